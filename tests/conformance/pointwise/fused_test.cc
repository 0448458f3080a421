// Fused ops: every kernel gives the bytes of the separate ops, run by kernels of the same
// instruction set.
#include <gtest/gtest.h>

#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/run_kernels.h"
#include "tests/conformance/support/shapes.h"

namespace latte::fused_test {
namespace {

// The last kernel of an op, up to an instruction set, that supports the shape.
template <class Op>
void RunKernelOf(Isa isa, const typename Op::Params& p) {
  const Kernel<Op>* chosen = nullptr;
  for (const Kernel<Op>& kernel : Kernels<Op>())
    if (Machine{.isa = isa}.Has(kernel.isa) && kernel.supports(Op::ShapeOf(p))) chosen = &kernel;
  RunKernel(*chosen, p);
}

// The tensors that an op writes, with their original content for restoring.
struct Written {
  explicit Written(std::vector<Guarded*> of) : tensors(std::move(of)), before(Bytes()) {}
  std::vector<std::vector<std::byte>> Bytes() const {
    std::vector<std::vector<std::byte>> out;
    for (const Guarded* t : tensors) out.push_back(t->Bytes());
    return out;
  }
  void Restore() const {
    for (size_t i = 0; i < tensors.size(); ++i)
      std::copy(before[i].begin(), before[i].end(), tensors[i]->view().data);
  }

  std::vector<Guarded*> tensors;
  std::vector<std::vector<std::byte>> before;
};

// Compares the outputs of every kernel of Op, with several thread counts, with `separate(isa)`.
template <class Op, class F>
void ExpectBytesOfSeparateOps(const typename Op::Params& p, std::vector<Guarded*> tensors,
                              const F& separate) {
  const Written written(std::move(tensors));
  ForEachKernelFor<Op>(Op::ShapeOf(p), [&](const Kernel<Op>& kernel) {
    separate(kernel.isa);
    const auto want = written.Bytes();
    for (const int threads : ThreadCounts(kernel)) {
      written.Restore();
      RunKernel(kernel, p, threads);
      ASSERT_EQ(want, written.Bytes());
    }
    written.Restore();
  });
}

TEST(AddRmsNormConformance, BytesOfAddThenRmsNorm) {
  std::mt19937 rng(30);
  for (const int64_t m : {0, 1, 2, 17, 65})
    for (const int64_t d : {1, 7, 8, 15, 16, 17, 65, 191, 2048})
      for (const DType w_type : {DType::kF32, DType::kF16, DType::kBF16}) {
        SCOPED_TRACE(fmt::format("M={} D={} {}", m, d, Name(w_type)));
        Guarded x(DType::kF32, {m, d});
        Guarded h(DType::kF32, {m, d});
        Guarded y(DType::kF32, {m, d}, 3);
        const Guarded w(w_type, {d}, 0, /*shift=*/1);
        for (const TensorView& t : {x.view(), h.view(), w.view()}) FillRandom(t, rng);
        ExpectBytesOfSeparateOps<AddRmsNormOp>({x, h, w, y, 1e-6f}, {&x, &h, &y}, [&](Isa isa) {
          RunKernelOf<AddOp>(isa, {x, h});
          RunKernelOf<RmsNormOp>(isa, {h, w, y, 1e-6f});
        });
        ExpectBytesOfSeparateOps<AddRmsNormOp>({x, h, w, x, 1e-6f}, {&x, &h}, [&](Isa isa) {
          RunKernelOf<AddOp>(isa, {x, h});
          RunKernelOf<RmsNormOp>(isa, {h, w, x, 1e-6f});
        });
        if (HasFatalFailure()) return;
      }
}

TEST(AddRmsNormConformance, RowsDoNotDependOnEachOther) {
  std::mt19937 rng(31);
  const int64_t d = 3001;
  const Guarded x(DType::kF32, {23, d});
  Guarded h(DType::kF32, {23, d});
  Guarded y(DType::kF32, {23, d});
  const Guarded w(DType::kBF16, {d});
  for (const TensorView& t : {x.view(), h.view(), w.view()}) FillRandom(t, rng);
  const Written written({&h, &y});
  ForEachKernel<AddRmsNormOp>([&](const Kernel<AddRmsNormOp>& kernel) {
    RunKernel(kernel, {x, h, w, y, 1e-5f}, 3);
    const auto want = written.Bytes();
    written.Restore();
    for (int64_t i = 0; i < 23; ++i) {
      const auto at = [i](const Guarded& t) { return t.view().Slice(0, i, i + 1); };
      RunKernel(kernel, {at(x), at(h), w, at(y), 1e-5f});
    }
    ASSERT_EQ(want, written.Bytes());
    written.Restore();
  });
}

struct Widths {
  int64_t h, c, r;
};
constexpr Widths kWidths[] = {{16, 512, 64}, {3, 256, 32}, {2, 512, 0}, {1, 33, 6},
                              {5, 130, 10},  {1, 1, 2},    {0, 130, 10}};

// New tokens of a layer, before normalisation and rotation.
struct Tokens {
  Tokens(CacheDType cache, Widths at, int64_t t, int64_t page_tokens, std::mt19937& rng)
      : widths(at),
        latent(DType::kF32, {t, at.c + at.r}, 3),
        q_rope(DType::kF32, {t, at.h, at.r}, 5),
        w(DType::kBF16, {at.c}, 0, /*shift=*/2),
        cos(DType::kF32, {t, at.r / 2}),
        sin(DType::kF32, {t, at.r / 2}),
        pages(cache.dtype, {5, page_tokens, cache.Width(at.c, at.r)}),
        row_format{cache.kind} {
    for (const TensorView& x : {latent.view(), q_rope.view(), w.view(), cos.view(), sin.view()})
      FillRandom(x, rng);
    slots.resize(static_cast<size_t>(5 * page_tokens));
    std::iota(slots.begin(), slots.end(), 0);
    std::shuffle(slots.begin(), slots.end(), rng);
    slots.resize(static_cast<size_t>(t));
  }

  NormRopeAppendOp::Params Together(bool rotated, bool appended) const {
    NormRopeAppendOp::Params p;
    p.latent = latent;
    p.q_rope = q_rope;
    p.w = w;
    p.eps = 1e-6f;
    if (rotated) p.cos = cos;
    if (rotated) p.sin = sin;
    p.interleaved = interleaved;
    if (appended) p.pages = pages;
    if (appended) p.slots = slots;
    p.row_format = row_format;
    return p;
  }

  void OneByOne(Isa isa, bool rotated, bool appended) const {
    const TensorView c_kv = latent.view().Slice(1, 0, widths.c);
    const TensorView k_rope = latent.view().Slice(1, widths.c, widths.c + widths.r);
    TensorView k_head(k_rope.data, DType::kF32, {k_rope.shape[0], 1, widths.r});
    k_head.stride = {k_rope.stride[0], k_rope.stride[0], 1};
    RunKernelOf<RmsNormOp>(isa, {c_kv, w, c_kv, 1e-6f});
    if (rotated) RunKernelOf<RopeOp>(isa, {k_head, cos, sin, interleaved});
    if (rotated && widths.h > 0) RunKernelOf<RopeOp>(isa, {q_rope, cos, sin, interleaved});
    if (appended) RunKernelOf<AppendOp>(isa, {c_kv, k_rope, pages, slots, row_format});
  }

  Widths widths;
  Guarded latent, q_rope, w, cos, sin, pages;
  CacheRowFormat row_format;
  bool interleaved = true;
  std::vector<int64_t> slots;
};

TEST(NormRopeAppendConformance, BytesOfNormRopeAndAppend) {
  std::mt19937 rng(32);
  for (const CacheDType cache : kAllCaches)
    for (const Widths at : kWidths)
      for (const int64_t page_tokens : {16, 64})
        for (const int64_t t : {0, 1, 5, 37}) {
          SCOPED_TRACE(fmt::format("{} H={} C={} R={} T={} P={}", Name(cache), at.h, at.c, at.r, t,
                                   page_tokens));
          Tokens tokens(cache, at, t, page_tokens, rng);
          tokens.interleaved = rng() % 2 == 0;
          ExpectBytesOfSeparateOps<NormRopeAppendOp>(
              tokens.Together(true, true), {&tokens.latent, &tokens.q_rope, &tokens.pages},
              [&](Isa isa) { tokens.OneByOne(isa, true, true); });
          if (HasFatalFailure()) return;
        }
}

TEST(NormRopeAppendConformance, WithoutAnglesOrPages) {
  std::mt19937 rng(33);
  for (const bool rotated : {false, true})
    for (const bool appended : {false, true}) {
      SCOPED_TRACE(fmt::format("rotated {} appended {}", rotated, appended));
      Tokens tokens(CacheDType::Plain(DType::kBF16), {3, 130, 10}, 9, 16, rng);
      ExpectBytesOfSeparateOps<NormRopeAppendOp>(
          tokens.Together(rotated, appended), {&tokens.latent, &tokens.q_rope, &tokens.pages},
          [&](Isa isa) { tokens.OneByOne(isa, rotated, appended); });
      if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace latte::fused_test

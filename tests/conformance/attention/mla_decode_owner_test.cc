// mla_decode over the keys of one of several owners, and the merge of what it returns. Page tables
// have invalid entries for the pages of others.
#include <gtest/gtest.h>

#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/decode_grid.h"

namespace latte::mla_decode_owner_test {
namespace {

using OpKernel = DecodeKernel;
using MergeKernel = Kernel<MergeSplitsOp>;

Tensor CopyOf(const TensorView& t) {
  Tensor out(t.dtype, std::span(t.shape.data(), static_cast<size_t>(t.rank)));
  std::memcpy(out.Ptr<std::byte>(), t.data, static_cast<size_t>(out.bytes()));
  return out;
}

// Shapes with sequences of one to five splits: several tokens around a border, splits that end
// within a page, owners without keys, more rows than a task has.
std::vector<DecodeShape> Shapes() {
  std::vector<DecodeShape> out;
  for (const DecodeShape& s : DecodeShapes())
    if (std::ranges::any_of(s.sequences,
                            [](const SequenceShape& one) { return one.total_len > 1000; }))
      out.push_back(s);
  return out;
}

// The sequences of a case as one owner sees them.
struct OwnSequences {
  OwnSequences(const DecodeCase& c, const DecodeShape& s, const KeyOwner& owner) {
    for (const SequenceChunk& sequence : c.sequences) {
      std::vector<int32_t>& own = pages.emplace_back(sequence.pages.begin(), sequence.pages.end());
      for (size_t i = 0; i < own.size(); ++i) {
        const int64_t first = static_cast<int64_t>(i) * s.page_tokens;
        const int64_t last = first + s.page_tokens - 1;
        if (!owner.OwnsSplit(first / kSplitKeys) && !owner.OwnsSplit(last / kSplitKeys))
          own[i] = 2147480000;
      }
    }
    sequences = c.sequences;
    for (size_t i = 0; i < pages.size(); ++i) sequences[i].pages = pages[i];
  }
  std::vector<std::vector<int32_t>> pages;
  std::vector<SequenceChunk> sequences;
};

// What an owner returns: splits [P, H, C].
struct OwnSplits {
  OwnSplits(const MlaDecodeOp::Params& p, const KeyOwner& owner)
      : rows(MlaDecodeOp::RowsOfSplits(p.sequences, owner) * p.q_latent.shape[1]),
        o(DType::kF32, {rows, p.q_latent.shape[2]}),
        max(DType::kF32, {rows}),
        sum(DType::kF32, {rows}) {}
  SplitResults Views() const { return {o, max, sum}; }
  int64_t rows;
  Guarded o, max, sum;
};

// A kernel of processors for the splits of `kernel`.
const MergeKernel& MergeKernelFor(const OpKernel& kernel) {
  const std::span<const MergeKernel> kernels = Kernels<MergeSplitsOp>();
  size_t last = 0;
  for (size_t i = 0; i < kernels.size(); ++i)
    if (kernels[i].isa.family == kernel.isa.family && kernels[i].isa.level <= kernel.isa.level)
      last = i;
  return kernels[last];
}

// Runs attention of every owner, then the merge of all splits, into c.o and c.lse.
void RunOverOwners(const OpKernel& kernel, DecodeCase& c, const DecodeShape& s, int64_t owners,
                   int threads) {
  std::vector<std::unique_ptr<OwnSplits>> of_owners;
  for (int64_t i = 0; i < owners; ++i) {
    MlaDecodeOp::Params p = c.Params();
    p.owner = {i, owners};
    const OwnSequences own(c, s, p.owner);
    p.sequences = own.sequences;
    of_owners.push_back(std::make_unique<OwnSplits>(p, p.owner));
    p.splits = of_owners.back()->Views();
    if (of_owners.back()->rows > 0) RunKernel(kernel, p, threads);
  }
  c.PoisonOutputs();
  std::vector<int64_t> next(static_cast<size_t>(owners));  // row of each
  for (const SequenceChunk& q : c.sequences) {
    const int64_t m = q.count * s.heads;
    std::vector<SplitResults> in_order;
    for (int64_t split = 0; split < KeyOwner::SplitsIn(q.total_len()); ++split) {
      const auto owner = static_cast<size_t>(split % owners);
      const SplitResults all = of_owners[owner]->Views();
      const int64_t begin = next[owner];
      next[owner] += m;
      in_order.push_back({all.o.Slice(0, begin, begin + m), all.max.Slice(0, begin, begin + m),
                          all.sum.Slice(0, begin, begin + m)});
    }
    const int64_t first = q.query_start * s.heads;
    const int64_t rows = c.o.view().shape[0] * s.heads;
    RunKernel(MergeKernelFor(kernel),
              {in_order, c.o.view().Reshape({rows, s.c}).Slice(0, first, first + m),
               c.lse.view().Reshape({rows}).Slice(0, first, first + m)},
              threads);
  }
  for (size_t i = 0; i < next.size(); ++i) ASSERT_EQ(next[i], of_owners[i]->rows);
}

TEST(MlaDecodeOwners, SplitsOfAllOwnersMergeToTheBitsOfOne) {
  std::mt19937 rng(41);
  for (const DecodeShape& s : Shapes()) {
    SCOPED_TRACE(Describe(s));
    DecodeCase c(s, rng);
    ForEachKernelFor<MlaDecodeOp>(MlaDecodeOp::ShapeOf(c.Params()), [&](const OpKernel& kernel) {
      if (kernel.isa.family == IsaFamily::kCuda) return;
      c.PoisonOutputs();
      RunKernel(kernel, c.Params(), 2);
      const Tensor o = CopyOf(c.o);
      const Tensor lse = CopyOf(c.lse);
      const bool reference = kernel.isa == Isa::kRef;
      for (const int64_t owners : {1, 2, 3, 8}) {
        RunOverOwners(kernel, c, s, owners, static_cast<int>(owners % 3) + 1);
        if (::testing::Test::HasFatalFailure()) return;
        if (reference) {
          const auto near = [](int64_t, int64_t, int64_t) { return 2e-5; };
          ASSERT_TRUE(Close(c.o, o, near)) << owners;
          ASSERT_TRUE(Close(c.lse, lse, near)) << owners;
          break;
        }
        ASSERT_TRUE(SameBits(c.o, o)) << owners;
        ASSERT_TRUE(SameBits(c.lse, lse)) << owners;
      }
    });
    if (HasFatalFailure()) return;
  }
}

// Each owner's keys as a sequence of their own, in new pages: the same attention without owners.
TEST(MlaDecodeOwners, AnOwnerAttendsToItsOwnKeys) {
  std::mt19937 rng(42);
  for (const DecodeShape& s : Shapes()) {
    SCOPED_TRACE(Describe(s));
    DecodeCase c(s, rng);
    ForEachKernelFor<MlaDecodeOp>(MlaDecodeOp::ShapeOf(c.Params()), [&](const OpKernel& kernel) {
      if (kernel.isa.family == IsaFamily::kCuda) return;
      for (const int64_t owners : {2, 5}) {
        std::vector<Tensor> parts_o, parts_lse;
        for (int64_t i = 0; i < owners; ++i) {
          MlaDecodeOp::Params p = c.Params();
          p.owner = {i, owners};
          const OwnSequences own(c, s, p.owner);
          p.sequences = own.sequences;
          c.PoisonOutputs();
          RunKernel(kernel, p, static_cast<int>(i % 3) + 1);
          parts_o.push_back(CopyOf(c.o));
          parts_lse.push_back(CopyOf(c.lse));
        }
        c.PoisonOutputs();
        RunKernel(kernel, c.Params());
        const int64_t rows = c.o.view().shape[0] * s.heads;
        for (int64_t i = 1; i < owners; ++i)
          RunRef<LseMergeOp>({parts_o[0].view().Reshape({rows, s.c}),
                              parts_lse[0].view().Reshape({rows}),
                              parts_o[static_cast<size_t>(i)].view().Reshape({rows, s.c}),
                              parts_lse[static_cast<size_t>(i)].view().Reshape({rows})});
        const auto near = [](int64_t, int64_t, int64_t) { return 2e-5; };
        ASSERT_TRUE(Close(parts_o[0], c.o, near)) << owners;
        ASSERT_TRUE(Close(parts_lse[0], c.lse, near)) << owners;
        if (kernel.isa == Isa::kRef) break;
      }
    });
    if (HasFatalFailure()) return;
  }
}

TEST(MlaDecodeOwners, RowsOfOthersAreNotAppended) {
  const std::vector<int64_t> slots = {-1, 3, -1};
  Tensor first(DType::kF32, {3, 2});
  Tensor second(DType::kF32, {3, 1});
  for (int64_t i = 0; i < 6; ++i) first.Ptr<float>()[i] = static_cast<float>(i + 1);
  for (int64_t i = 0; i < 3; ++i) second.Ptr<float>()[i] = static_cast<float>(10 * (i + 1));
  ForEachKernel<AppendOp>([&](const Kernel<AppendOp>& kernel) {
    if (kernel.isa.family == IsaFamily::kCuda) return;
    std::vector<float> pages(12, -1);
    RunKernel(kernel, {first, second, TensorView(pages.data(), DType::kF32, {2, 2, 3}), slots});
    EXPECT_EQ(pages, (std::vector<float>{-1, -1, -1, -1, -1, -1, -1, -1, -1, 3, 4, 20}));
  });
  std::vector<float> ones(2, 1);
  ForEachKernel<NormRopeAppendOp>([&](const Kernel<NormRopeAppendOp>& kernel) {
    if (kernel.isa.family == IsaFamily::kCuda) return;
    std::vector<float> latent = {1, 1, 7, 2, 2, 8, 3, 3, 9};
    std::vector<float> pages(12, -1);
    NormRopeAppendOp::Params p;
    p.latent = {latent.data(), DType::kF32, {3, 3}};
    p.q_rope = {nullptr, DType::kF32, {3, 0, 1}};
    p.w = {ones.data(), DType::kF32, {2}};
    p.pages = {pages.data(), DType::kF32, {2, 2, 3}};
    p.slots = slots;
    RunKernel(kernel, p);
    EXPECT_EQ(std::count(pages.begin(), pages.end(), -1.0f), 9);
    EXPECT_EQ(pages[11], 8.0f);
    EXPECT_FLOAT_EQ(latent[0], 1.0f);  // normed all the same
    EXPECT_FLOAT_EQ(latent[6], 1.0f);
  });
}

}  // namespace
}  // namespace latte::mla_decode_owner_test

// gemm and gemm_t of every type of weights with every type of activations, in products so small
// that an emulated GPU takes all of them: values, bits, and memory that must not be touched.
#include <algorithm>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/support/block_case.h"
#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/cuts.h"
#include "tests/conformance/support/quant_case.h"
#include "tests/conformance/support/run_kernels.h"
#include "tests/conformance/support/tolerance.h"

namespace latte::gemm_types_test {
namespace {

// A weight of any type with its scales, and |W| as plain f32.
class AnyWeight {
 public:
  AnyWeight(DType type, int64_t b, int64_t n, int64_t k, const QuantBlocks& blocks,
            std::mt19937& rng) {
    if (IsPlain(type) || IsBlocks(type))
      whole_.emplace(type, b, n, k, BlockScales::kReal, rng);
    else
      scaled_.emplace(type, b, n, k, blocks, rng);
  }

  const TensorView& w() const { return whole_ ? whole_->w.view() : scaled_->codes.view(); }
  BlockScale scale() const { return whole_ ? BlockScale{} : scaled_->grid; }
  const Tensor& magnitude() const { return whole_ ? whole_->magnitude : scaled_->magnitude; }

 private:
  std::optional<BlockWeight> whole_;
  std::optional<QuantWeight> scaled_;
};

// The plain types, the blocks, then types with scales elsewhere.
std::vector<DType> WeightTypes() {
  std::vector<DType> out = {DType::kF32, DType::kBF16, DType::kF16};
  for (const BlockCase& c : kBlockCases) out.push_back(c.dtype);
  out.insert(out.end(), std::begin(kWeightTypes), std::end(kWeightTypes));
  return out;
}

struct TypesCase {
  DType x, w, gate;
  QuantShape shape;
  QuantBlocks blocks;
};

// A length of rows that both types can have, and with which blocks of 32 are several.
int64_t TermsFor(DType w, DType gate, size_t turn) {
  const int64_t values = std::max(ValuesPerElement(w), ValuesPerElement(gate));
  return values < 32 ? 65 + static_cast<int64_t>(turn % 3) : values == 32 ? 96 : 256;
}

// Every pair of types. Weights with scales elsewhere have every kind of blocks; the others have
// gates of several types. M is around the rows that a GPU's warp takes.
std::vector<TypesCase> TypesCases() {
  constexpr int64_t kRows[] = {1, 3, 8, 9, 2};
  std::vector<TypesCase> out;
  const std::vector<DType> types = WeightTypes();
  const size_t unscaled = types.size() - std::size(kWeightTypes);
  for (size_t i = 0; i < types.size(); ++i)
    for (const DType x : kInputTypes)
      for (size_t l = 0; l < (i < unscaled ? 2 : std::size(kQuantBlocks)); ++l) {
        const size_t turn = out.size();
        const DType gate = types[i < unscaled ? (i + l * (1 + turn % 3)) % unscaled : i];
        const int64_t b = 1 + static_cast<int64_t>(turn % 2);
        const int64_t k = TermsFor(types[i], gate, turn);
        out.push_back({x, types[i], gate, {b, kRows[turn % 5], 5, k}, kQuantBlocks[l]});
      }
  return out;
}

GemmProblem ProblemOf(const QuantInput& x, const AnyWeight& w, const TensorView& y) {
  GemmProblem p;
  p.x = x.x;
  p.w = w.w();
  p.y = y;
  p.w_scale = w.scale();
  if (p.x.dtype == DType::kI8) {
    p.x_scale = x.scale;
    p.x_group = x.group;
  }
  return p;
}

// Σ|x||W| of every output.
Tensor SumsOf(const QuantInput& x, const AnyWeight& w, const TensorView& like) {
  Tensor out(DType::kF32, {like.shape[0], like.shape[1], like.shape[2]});
  RunRefPart({x.magnitude, w.magnitude(), TensorView(), out});
  return out;
}

Tensor CopyOf(const TensorView& from) {
  Tensor out(DType::kF32, {from.shape[0], from.shape[1], from.shape[2]});
  for (int64_t i = 0; i < from.shape[0]; ++i)
    for (int64_t j = 0; j < from.shape[1]; ++j)
      for (int64_t l = 0; l < from.shape[2]; ++l)
        out.Ptr<float>()[(i * from.shape[1] + j) * from.shape[2] + l] = GetValue(from, i, j, l);
  return out;
}

TEST(GemmTypes, ReferenceWithinRoundingAndLastRowAndOutputAlone) {
  std::mt19937 rng(41);
  for (const TypesCase& c : TypesCases()) {
    const auto& [b, m, n, k] = c.shape;
    SCOPED_TRACE(fmt::format("B={} M={} K={} {}·{} gate {}, blocks {}×{} from {},{} of {}", b, m, k,
                             Name(c.x), Name(c.w), Name(c.gate), c.blocks.rows, c.blocks.columns,
                             c.blocks.row_begin, c.blocks.column_begin, Name(c.blocks.scale)));
    const AnyWeight w(c.w, b, n, k, c.blocks, rng), gate(c.gate, b, n, k, c.blocks, rng);
    const QuantInput x(c.x, b, m, k, 32, rng);
    const Guarded bias(DType::kF32, {n});
    FillRandom(bias, rng);
    Guarded y(DType::kF32, {b, m, n}, kQuantPad);
    const Tensor up(DType::kF32, {b, m, n}), want(DType::kF32, {b, m, n});
    const Tensor sums = SumsOf(x, w, y), gate_sums = SumsOf(x, gate, y);
    RunRefPart(ProblemOf(x, w, up));
    for (const bool gated : {false, true}) {
      GemmProblem p = ProblemOf(x, w, want);
      if (gated) {
        p.gate = gate.w();
        p.gate_scale = gate.scale();
      } else {
        p.bias = bias;
      }
      RunRefPart(p);
      p.y = y;
      ForEachFastKernel<GemmOp>(GemmOp::ShapeOf(p), [&, length = k](const Kernel<GemmOp>& kernel) {
        y.Poison();
        RunPart(kernel, p);
        ASSERT_TRUE(Close(y, want, [&](int64_t i, int64_t j, int64_t l) {
          const auto of = [&](const Tensor& t) {
            return static_cast<double>(GetValue(t, i, j, l));
          };
          if (!gated) return QuantBound(length, of(sums) + 1);
          return GateBound(QuantBound(length, of(gate_sums)), QuantBound(length, of(sums)),
                           of(gate_sums), of(up), of(want));
        })) << (gated ? "with a gate" : "with a bias");
        ASSERT_TRUE(y.PaddingIsPoison());
        const Tensor whole = CopyOf(y);
        const int64_t last_row = p.x.shape[1] - 1, last_output = p.w.shape[1] - 1;
        y.Poison();
        RunPart(kernel, RowsOf(p, last_row, last_row + 1));
        ASSERT_TRUE(SameBits(p.y.Slice(1, last_row, last_row + 1),
                             whole.view().Slice(1, last_row, last_row + 1)));
        y.Poison();
        RunPart(kernel, OutputsOf(p, last_output, last_output + 1));
        ASSERT_TRUE(SameBits(p.y.Slice(2, last_output, last_output + 1),
                             whole.view().Slice(2, last_output, last_output + 1)));
      });
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(GemmTypes, TransposedWithinRounding) {
  std::mt19937 rng(42);
  for (const TypesCase& c : TypesCases()) {
    const auto& [b, m, n, k] = c.shape;
    if (c.x == DType::kI8) continue;
    SCOPED_TRACE(fmt::format("B={} M={} K={} {}·{}, blocks {}×{} from {},{} of {}", b, m, k,
                             Name(c.x), Name(c.w), c.blocks.rows, c.blocks.columns,
                             c.blocks.row_begin, c.blocks.column_begin, Name(c.blocks.scale)));
    const AnyWeight w(c.w, b, n, k, c.blocks, rng);
    const QuantInput x(c.x, b, m, n, 128, rng);
    Guarded y(DType::kF32, {b, m, k}, kQuantPad);
    const Tensor want(DType::kF32, {b, m, k}), sums(DType::kF32, {b, m, k});
    RunRef<GemmTOp>({x.x, w.w(), want, w.scale()});
    RunRef<GemmTOp>({x.magnitude, w.magnitude(), sums});
    const GemmTOp::Params p{x.x, w.w(), y, w.scale()};
    ForEachFastKernel<GemmTOp>(GemmTOp::ShapeOf(p), [&, terms = n](const Kernel<GemmTOp>& kernel) {
      if (kernel.isa == x86::kAvx512Vnni) return;  // fixed-point numbers: gemm_quant_test.cc
      y.Poison();
      RunKernel<GemmTOp>(kernel, p);
      ASSERT_TRUE(Close(y, want, [&](int64_t i, int64_t j, int64_t l) {
        return QuantBound(terms, static_cast<double>(GetValue(sums, i, j, l)));
      }));
      ASSERT_TRUE(y.PaddingIsPoison());
    });
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace latte::gemm_types_test

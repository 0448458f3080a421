// Rows of experts have the bits that gemm gives them, and no other row is written, whatever the
// routing.
#include <memory>
#include <optional>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/conformance/support/block_case.h"
#include "tests/conformance/support/quant_case.h"
#include "tests/conformance/support/run_kernels.h"

namespace latte::expert_gemm_test {
namespace {

constexpr int64_t kN = 24, kK = 160, kSharedRows = 3;

// The rows of each expert. Ranks that have a part of the experts pass a part of `first`.
struct Routing {
  std::vector<int32_t> first;
  int64_t rows;
};
const Routing kRoutings[] = {
    {{0, 0, 0, 0, 0}, 0},           // no token
    {{0, 0, 0, 0, 0}, 5},           // all tokens chose experts of ranks after this one
    {{0, 0, 9, 9, 9}, 9},           // one expert has all
    {{0, 1, 3, 3, 4, 70, 72}, 72},  // few and many
    {{7, 7, 9, 24, 24, 25}, 31},    // experts of ranks before this one and after it have rows
    {{6, 6, 6}, 6},
    {{0, 1}, 1},
};

// A batch of one as a matrix.
TensorView Matrix(const TensorView& batch) {
  TensorView out = batch;
  out.rank = 2;
  out.shape = {batch.shape[1], batch.shape[2]};
  out.stride = {batch.stride[1], batch.stride[2]};
  return out;
}

class Experts {
 public:
  // The types of weights are the experts' in turn. `gate_type`: of the gates, which need not be
  // that of the other weights.
  Experts(DType x_type, const std::vector<DType>& w_types, std::optional<DType> gate_type,
          const Routing& routing, bool has_shared, std::mt19937& rng)
      : routing_(routing),
        gated_(gate_type.has_value()),
        x_(x_type, 1, routing.rows, kK, 128, rng),
        shared_x_(x_type, 1, kSharedRows, kK, 128, rng),
        y_(DType::kF32, {1, routing.rows, kN}, kQuantPad),
        shared_y_(DType::kF32, {1, kSharedRows, kN}, kQuantPad) {
    const QuantBlocks blocks = {1, 32, 0, 0, DType::kBF16, /*zeros=*/true};
    // A weight and a gate of every expert, and of the shared one.
    for (size_t i = 0; i < 2 * (routing.first.size() - 1) + 2; ++i) {
      const DType w_type = w_types[i / 2 % w_types.size()];
      const DType type = i % 2 == 0 ? w_type : gate_type.value_or(w_type);
      weights_.push_back(std::make_unique<QuantWeight>(type, 1, kN, kK, blocks, rng));
      if (IsPlain(type)) FillRandom(weights_.back()->codes, rng);
      if (IsBlocks(type)) FillBlocks(weights_.back()->codes, BlockScales::kReal, rng);
    }
    for (size_t e = 0; e + 1 < routing.first.size(); ++e) {
      const bool left_out = e % 4 == 1 && routing.first.size() > 3;
      table_.push_back(left_out ? ExpertWeights{} : WeightsOf(e));
    }
    if (has_shared) shared_ = Problem(shared_x_, 0, kSharedRows, table_.size(), shared_y_);
  }

  ExpertGemmOp::Params Params() const {
    ExpertGemmOp::Params p;
    p.experts = table_;
    p.first = routing_.first;
    p.x = Matrix(x_.x);
    p.y = Matrix(y_);
    if (p.x.dtype == DType::kI8) {
      p.x_scale = Matrix(x_.scale);
      p.x_group = x_.group;
    }
    if (shared_) p.shared = {&*shared_, 1};
    return p;
  }

  // The same as problems of gemm.
  std::vector<GemmProblem> Problems() const {
    std::vector<GemmProblem> out;
    if (shared_) out.push_back(*shared_);
    for (size_t e = 0; e < table_.size(); ++e)
      if (!table_[e].w.empty() && routing_.first[e] < routing_.first[e + 1])
        out.push_back(Problem(x_, routing_.first[e], routing_.first[e + 1], e, y_));
    return out;
  }

  void Poison() { y_.Poison(), shared_y_.Poison(); }
  // All results, with the rows that are not written.
  std::vector<std::byte> Bytes() const {
    std::vector<std::byte> out = y_.Bytes();
    const std::vector<std::byte> shared = shared_y_.Bytes();
    out.insert(out.end(), shared.begin(), shared.end());
    return out;
  }

 private:
  BlockScale ScalesOf(const QuantWeight& w) const {
    const DType type = w.codes.view().dtype;
    return IsPlain(type) || IsBlocks(type) ? BlockScale{} : w.grid;
  }
  ExpertWeights WeightsOf(size_t e) const {
    const QuantWeight& w = *weights_[2 * e];
    const QuantWeight& gate = *weights_[2 * e + 1];
    ExpertWeights out = {.w = Matrix(w.codes), .w_scale = ScalesOf(w)};
    if (!gated_) return out;
    out.gate = Matrix(gate.codes);
    out.gate_scale = ScalesOf(gate);
    return out;
  }
  GemmProblem Problem(const QuantInput& x, int64_t begin, int64_t end, size_t e,
                      const TensorView& y) const {
    const QuantWeight& w = *weights_[2 * e];
    const QuantWeight& gate = *weights_[2 * e + 1];
    GemmProblem out;
    out.x = x.x.view().Slice(1, begin, end);
    out.w = w.codes;
    out.y = y.Slice(1, begin, end);
    out.w_scale = ScalesOf(w);
    if (out.x.dtype == DType::kI8) {
      out.x_scale = x.scale.view().Slice(1, begin, end);
      out.x_group = x.group;
    }
    if (!gated_) return out;
    out.gate = gate.codes;
    out.gate_scale = ScalesOf(gate);
    return out;
  }

  Routing routing_;
  bool gated_;
  std::vector<std::unique_ptr<QuantWeight>> weights_;
  QuantInput x_, shared_x_;
  Guarded y_, shared_y_;
  std::vector<ExpertWeights> table_;
  std::optional<GemmProblem> shared_;
};

// On every instruction set of this machine, with one thread and with three, and with kernels that
// are selected once for a step.
void ExpectBitsOfGemm(Experts& experts) {
  const auto selections = std::make_unique<Selections>();
  for (const Isa isa : AllIsas()) {
    if (!TestMachine().Has(isa)) continue;
    const Machine machine{.isa = isa, .uarch = TestMachine().uarch};
    const std::vector<GemmProblem> problems = experts.Problems();
    experts.Poison();
    if (!problems.empty()) latte::Run<GemmOp>({problems}, Exec{&TestPool(2), &machine});
    const std::vector<std::byte> want = experts.Bytes();
    selections->Clear();
    for (const int threads : {1, 3})
      for (Selections* const once : {static_cast<Selections*>(nullptr), selections.get()}) {
        experts.Poison();
        latte::Run<ExpertGemmOp>(
            experts.Params(),
            Exec{.threads = &TestPool(threads), .machine = &machine, .selections = once});
        ASSERT_TRUE(experts.Bytes() == want) << Name(isa) << ", " << threads << " threads";
      }
  }
}

// The same for the kernels of a GPU, where there is one.
void ExpectBitsOfGemmOnGpu(Experts& experts) {
  ForEachKernel<ExpertGemmOp>([&](const Kernel<ExpertGemmOp>& kernel) {
    const ExpertGemmOp::Params p = experts.Params();
    if (kernel.isa.family != IsaFamily::kCuda || !kernel.supports(ExpertGemmOp::ShapeOf(p))) return;
    experts.Poison();
    for (const GemmProblem& problem : experts.Problems())
      ForEachKernel<GemmOp>([&](const Kernel<GemmOp>& gemm) {
        if (gemm.isa == kernel.isa) RunPart(gemm, problem);
      });
    const std::vector<std::byte> want = experts.Bytes();
    experts.Poison();
    RunKernel(kernel, p);
    ASSERT_TRUE(experts.Bytes() == want);
  });
}

TEST(ExpertGemm, RowsHaveTheBitsOfGemmAndNoOtherRowIsWritten) {
  std::mt19937 rng(31);
  size_t turn = 0;
  for (const Routing& routing : kRoutings)
    for (const DType x_type : kInputTypes)
      for (const DType w_type : {DType::kBF16, DType::kF8E4M3, DType::kI8, DType::kU4})
        for (const bool gated : {false, true}) {
          const bool has_shared = turn++ % 3 != 0;
          if (!IsRun(turn, 0, 5)) continue;
          SCOPED_TRACE(fmt::format("rows {} of {}, {}·{}{}{}", fmt::join(routing.first, " "),
                                   routing.rows, Name(x_type), Name(w_type),
                                   gated ? ", with gates" : "",
                                   has_shared ? ", with a shared expert" : ""));
          Experts experts(x_type, {w_type}, gated ? std::optional(w_type) : std::nullopt, routing,
                          has_shared, rng);
          ExpectBitsOfGemm(experts);
          ExpectBitsOfGemmOnGpu(experts);
          if (HasFatalFailure()) return;
        }
}

TEST(ExpertGemm, GatesMayHaveAnotherType) {
  constexpr std::pair<DType, DType> kTypes[] = {{DType::kBF16, DType::kQ8_0},
                                                {DType::kQ4_0, DType::kBF16},
                                                {DType::kBF16, DType::kF32},
                                                {DType::kQ8_0, DType::kMXFP4}};
  std::mt19937 rng(33);
  for (const Routing& routing : kRoutings)
    for (const DType x_type : {DType::kF32, DType::kBF16})
      for (const auto& [w_type, gate_type] : kTypes) {
        SCOPED_TRACE(fmt::format("{} rows, {}·{} with gate {}", routing.rows, Name(x_type),
                                 Name(w_type), Name(gate_type)));
        Experts experts(x_type, {w_type}, gate_type, routing, /*has_shared=*/true, rng);
        ExpectBitsOfGemm(experts);
        ExpectBitsOfGemmOnGpu(experts);
        if (HasFatalFailure()) return;
      }
}

// Weights of several types, and more experts than one launch on a GPU takes.
TEST(ExpertGemm, ExpertsMayLieDifferently) {
  std::mt19937 rng(34);
  Routing many = {{0}, 0};
  for (int e = 0; e < 180; ++e) {
    many.rows += e % 3 == 0 ? 1 : 0;
    many.first.push_back(static_cast<int32_t>(many.rows));
  }
  for (const Routing& routing : {kRoutings[3], many}) {
    SCOPED_TRACE(fmt::format("{} experts", routing.first.size() - 1));
    Experts experts(DType::kF32, {DType::kBF16, DType::kQ8_0}, DType::kQ8_0, routing, true, rng);
    ExpectBitsOfGemm(experts);
    ExpectBitsOfGemmOnGpu(experts);
    Experts one_type(DType::kBF16, {DType::kF8E4M3}, std::nullopt, routing, false, rng);
    ExpectBitsOfGemm(one_type);
    ExpectBitsOfGemmOnGpu(one_type);
    if (HasFatalFailure()) return;
  }
}

TEST(ExpertGemm, WorkIsThatOfExpertsWithRows) {
  std::mt19937 rng(32);
  for (const Routing& routing : kRoutings) {
    const Experts experts(DType::kBF16, {DType::kI8}, DType::kI8, routing, true, rng);
    const OpWork found = ExpertGemmOp::WorkOf(experts.Params());
    const OpWork want = GemmOp::WorkOf({experts.Problems()});
    EXPECT_EQ(found.flops, want.flops);
    EXPECT_EQ(found.bytes, want.bytes);
  }
}

}  // namespace
}  // namespace latte::expert_gemm_test

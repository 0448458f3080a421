// Kernels of gemm and gemm_t with one order of sums (Kernel::order) give the same bits, alone and
// in a group whose problems take different kernels.
#include <memory>

#include <gtest/gtest.h>

#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/quant_case.h"
#include "tests/conformance/support/run_kernels.h"

namespace latte::gemm_order_test {
namespace {

// Edges of the ranges of M of all kernels.
constexpr int64_t kEdgesOfM[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  12,
                                 13, 14, 16, 17, 31, 33, 48, 95, 96, 130};

// Runs every fast kernel of the shape and compares it with the first one of its order.
template <class Op>
void ExpectOneResultPerOrder(const typename Op::Params& p, Guarded& y) {
  std::map<std::string_view, std::vector<std::byte>> first;
  ForEachFastKernel<Op>(Op::ShapeOf(p), [&](const Kernel<Op>& kernel) {
    ASSERT_FALSE(kernel.order.empty()) << kernel.name;
    y.Poison();
    RunKernel<Op>(kernel, p, 2);
    const auto [of_order, is_new] = first.try_emplace(kernel.order, y.Bytes());
    if (!is_new) {
      ASSERT_TRUE(y.Bytes() == of_order->second) << kernel.name << " and order " << kernel.order;
    }
  });
}

struct GemmCase {
  GemmCase(DType x_type, DType w_type, const QuantShape& s, const QuantBlocks& blocks,
           std::mt19937& rng)
      : w(w_type, s.b, s.n, s.k, blocks, rng),
        x(x_type, s.b, s.m, s.k, 128, rng),
        y(DType::kF32, {s.b, s.m, s.n}, kQuantPad) {
    if (IsPlain(w_type)) FillRandom(w.codes, rng);
  }
  GemmProblem Problem() const {
    GemmProblem p = PartOf(x, w, y);
    if (IsPlain(w.codes.view().dtype)) p.w_scale = {};
    return p;
  }

  QuantWeight w;
  QuantInput x;
  Guarded y;
};

constexpr DType kAllWeightTypes[] = {DType::kF32,    DType::kBF16, DType::kF16,
                                     DType::kF8E4M3, DType::kI8,   DType::kU4};
// One scale per row, groups of a chunk, short groups with zero points, and blocks.
constexpr QuantBlocks kBlocks[] = {{1, 0, 0, 0, DType::kBF16},
                                   {1, 128, 0, 0, DType::kF32},
                                   {1, 32, 0, 0, DType::kBF16, true},
                                   {128, 128, 0, 0, DType::kF32}};

TEST(GemmOrder, KernelsOfOneOrderGiveTheSameBits) {
  std::mt19937 rng(21);
  size_t turn = 0;
  for (const int64_t m : kEdgesOfM)
    for (const DType x_type : kInputTypes)
      for (const DType w_type : kAllWeightTypes) {
        constexpr int64_t kTerms[] = {1152, 130, 4096, 1920, 12800, 96, 2048};
        constexpr int64_t kOutputs[] = {40, 16, 67, 5};
        const int64_t k = kTerms[turn % 7];
        const int64_t n = kOutputs[turn / 2 % 4];
        const QuantBlocks& blocks = kBlocks[turn / 3 % 4];
        if (++turn % (testing_support::kUnderTsan ? 5 : 1) != 0) continue;
        SCOPED_TRACE(fmt::format("M={} N={} K={} {}·{} blocks of {}", m, n, k, Name(x_type),
                                 Name(w_type), blocks.columns));
        GemmCase c(x_type, w_type, {1, m, n, k}, blocks, rng);
        const GemmProblem p = c.Problem();
        ExpectOneResultPerOrder<GemmOp>({{&p, 1}}, c.y);
        if (HasFatalFailure()) return;
      }
}

TEST(GemmOrder, KernelsOfGemmTOfOneOrderGiveTheSameBits) {
  std::mt19937 rng(22);
  size_t turn = 0;
  for (const int64_t m : kEdgesOfM)
    for (const DType x_type : {DType::kF32, DType::kBF16, DType::kF16})
      for (const DType w_type : kAllWeightTypes) {
        constexpr int64_t kColumns[] = {512, 130, 64, 1024};
        const int64_t k = kColumns[turn % 4];
        const QuantBlocks& blocks = kBlocks[turn++ / 2 % 4];
        SCOPED_TRACE(fmt::format("M={} K={} {}·{} blocks of {}", m, k, Name(x_type), Name(w_type),
                                 blocks.columns));
        const QuantWeight w(w_type, 2, 70, k, blocks, rng);
        if (IsPlain(w_type)) FillRandom(w.codes, rng);
        const QuantInput x(x_type, 2, m, 70, 128, rng);
        Guarded y(DType::kF32, {2, m, k}, kQuantPad);
        const BlockScale scales = IsPlain(w_type) ? BlockScale{} : w.grid;
        ExpectOneResultPerOrder<GemmTOp>({x.x, w.codes, y, scales}, y);
        if (HasFatalFailure()) return;
      }
}

// A group whose problems differ in M takes several kernels. Each problem has the bits that its own
// kernel gives it alone.
TEST(GemmOrder, ProblemsOfAGroupTakeTheirOwnKernels) {
  std::mt19937 rng(23);
  for (const DType x_type : {DType::kF32, DType::kBF16, DType::kI8})
    for (const DType w_type : kAllWeightTypes)
      for (const Isa isa : AllIsas()) {
        if (!TestMachine().Has(isa)) continue;
        std::vector<std::unique_ptr<GemmCase>> cases;
        std::vector<GemmProblem> problems;
        for (const int64_t m : {1, 4, 130, 7, 16, 2, 3, 64}) {
          cases.push_back(std::make_unique<GemmCase>(x_type, w_type, QuantShape{1, m, 40, 1152},
                                                     kBlocks[0], rng));
          problems.push_back(cases.back()->Problem());
        }
        const GemmOp::Params group{problems};
        for (const Uarch uarch : kAllUarchs) {
          const Machine machine{.isa = isa, .uarch = uarch};
          const Exec exec{&TestPool(2), &machine};
          std::vector<std::vector<std::byte>> alone;
          const Kernel<GemmOp>& selected = Select<GemmOp>(GemmOp::ShapeOf(group), machine);
          for (size_t i = 0; i < problems.size(); ++i) {
            const GemmOp::Params one{{&problems[i], 1}};
            SelectPeer<GemmOp>(selected, GemmOp::ShapeOf(one), machine).run(one, exec);
            alone.push_back(cases[i]->y.Bytes());
            cases[i]->y.Poison();
          }
          latte::Run<GemmOp>(group, exec);
          for (size_t i = 0; i < problems.size(); ++i)
            ASSERT_TRUE(cases[i]->y.Bytes() == alone[i])
                << Name(isa) << " " << Name(uarch) << " " << Name(w_type) << ", problem " << i;
        }
      }
}

}  // namespace
}  // namespace latte::gemm_order_test

// The kernels of expert_gemm. The CPU reads `first`, and leaves the products to gemm.
#include <vector>

#include "src/kernels/backends.h"
#include "src/kernels/cpu/tables/table.h"
#include "src/kernels/registry.h"

namespace latte {
namespace cpu {
namespace {

// One call of gemm, whose threads share the tasks of all experts. The shared expert comes first: it
// has the most rows, and while one thread computes it, others read weights.
void RunExpertGemm(const ExpertGemmOp::Params& p, const Exec& exec) {
  std::vector<GemmProblem> problems(p.shared.begin(), p.shared.end());
  for (size_t e = 0; e < p.experts.size(); ++e)
    if (!p.experts[e].w.empty() && p.first[e] < p.first[e + 1]) problems.push_back(p.ProblemOf(e));
  if (problems.empty()) return;
  const GemmOp::Params gemm{problems};
  SelectIn<GemmOp>(exec, GemmOp::ShapeOf(gemm)).run(gemm, exec);
}

constexpr Kernel<ExpertGemmOp> kExpertGemm[] = {
    Reference<ExpertGemmOp>("ref.expert_gemm", ref::ExpertGemm),
    {.name = "avx2.expert_gemm",
     .isa = x86::kAvx2,
     .supports = Always<ExpertGemmOp>,
     .run = RunExpertGemm,
     .order = "as gemm",
     .remark = "every expert with the kernel of gemm for its rows"},
};

}  // namespace

template <>
std::span<const Kernel<ExpertGemmOp>> Kernels<ExpertGemmOp>() {
  return kExpertGemm;
}

}  // namespace cpu
}  // namespace latte

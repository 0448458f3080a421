#include "src/kernels/registry.h"

#include <array>

#include <fmt/format.h>

#include "src/base/limits/device_error.h"
#include "src/kernels/ops.h"

namespace latte {
namespace {

template <class... Ops>
struct Listing {
  static std::vector<KernelInfo> All() {
    std::vector<KernelInfo> out;
    const auto add = [&out]<class Op>(std::span<const Kernel<Op>> kernels) {
      for (const Kernel<Op>& k : kernels) out.push_back({Op::kName, k.name, k.isa, k.order});
    };
    (add(Kernels<Ops>()), ...);
    return out;
  }
};

}  // namespace

void ThrowNoKernel(std::string_view op, const std::string& shape, const Machine& machine) {
  throw DeviceError(
      fmt::format("no kernel for {} computes {}{}; run without --device cuda", Name(machine.isa),
                  op, shape.empty() ? "" : fmt::format(" of {}", shape)),
      Code::kUnsupported);
}

std::vector<KernelInfo> AllKernels() { return AllOps<Listing>::All(); }

std::string CurrentKernelName(std::string_view name) {
  struct Renamed {
    std::string_view former, now;
  };
  constexpr std::array kRenamed = {Renamed{".linear", ".gemm"}, Renamed{".linear_t", ".gemm_t"},
                                   Renamed{".gemm_bf16_streams", ".gemm_bf16_small_m"}};
  for (const Renamed& r : kRenamed)
    if (name.ends_with(r.former))
      return std::string(name.substr(0, name.size() - r.former.size())).append(r.now);
  return std::string(name);
}

NameMatch MatchName(std::string_view wanted, const KernelInfo& kernel) {
  if (wanted == kernel.name) return NameMatch::kKernel;
  const std::string_view isa = Name(kernel.isa);
  const bool group = wanted.size() == isa.size() + 1 + kernel.op.size() &&
                     wanted.starts_with(isa) && wanted[isa.size()] == '.' &&
                     wanted.ends_with(kernel.op);
  return group ? NameMatch::kGroup : NameMatch::kNone;
}

}  // namespace latte

#include "src/kernels/registry.h"

#include <array>

namespace latte {

std::string CurrentKernelName(std::string_view name) {
  struct Renamed {
    std::string_view old_op, op;
  };
  constexpr std::array kRenamed = {Renamed{".linear", ".gemm"}, Renamed{".linear_t", ".gemm_t"}};
  for (const Renamed& r : kRenamed)
    if (name.ends_with(r.old_op))
      return std::string(name.substr(0, name.size() - r.old_op.size())).append(r.op);
  return std::string(name);
}

}  // namespace latte

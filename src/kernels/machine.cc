#include "src/kernels/machine.h"

#include <cstdlib>

#include <fmt/format.h>

#include "src/kernels/registry.h"

namespace latte {
namespace {

Isa BestIsa() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                    __builtin_cpu_supports("f16c") != 0;
  if (!avx2) return Isa::kRef;
  const bool avx512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  if (!avx512) return Isa::kAvx2;
  // Each of these also asks whether the operating system saves the registers.
  return __builtin_cpu_supports("avx512bf16") != 0 ? Isa::kAvx512Bf16 : Isa::kAvx512;
}

Result<Isa> ParseIsa(std::string_view text) {
  for (const Isa isa : {Isa::kRef, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16})
    if (text == Name(isa)) return isa;
  return InvalidArgument(
      fmt::format("LATTE_ISA: expected ref, avx2, avx512 or avx512_bf16, found '{}'", text));
}

bool IsKernelName(std::string_view name) {
  for (const KernelInfo& row : AllKernels())
    if (row.name == name) return true;
  return false;
}

}  // namespace

std::string_view Name(Isa isa) {
  switch (isa) {
    case Isa::kRef:
      return "ref";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512_bf16";
  }
  return "?";
}

Result<Machine> Machine::Detect() {
  Machine machine;
  machine.isa = BestIsa();
  if (const char* wanted = std::getenv("LATTE_ISA"); wanted != nullptr && *wanted != '\0') {
    LATTE_ASSIGN_OR_RETURN(const Isa isa, ParseIsa(wanted));
    if (!machine.Has(isa))
      return InvalidArgument(
          fmt::format("LATTE_ISA={}: this processor has {} at best", wanted, Name(machine.isa)));
    machine.isa = isa;
  }
  const char* forced = std::getenv("LATTE_KERNEL");
  std::string_view rest = forced == nullptr ? "" : forced;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view name = rest.substr(0, comma);
    if (!IsKernelName(name))
      return InvalidArgument(fmt::format(
          "LATTE_KERNEL: no kernel is named '{}'; `latte inspect --kernels` lists them", name));
    machine.forced_kernels.emplace_back(name);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return machine;
}

}  // namespace latte

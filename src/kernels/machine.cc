#include "src/kernels/machine.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <utility>

#include <cpuid.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/kernels/cpu/targets.h"
#include "src/kernels/cuda/isa.h"
#include "src/kernels/cuda/launch/kernel_set.h"
#include "src/kernels/registry.h"

namespace latte {
namespace {

const cpu::Target& TargetOf(Isa x86) { return *cpu::kTargets[static_cast<size_t>(x86.level)]; }

// The registers that the system saves (XCR0); 0 if it saves none beyond SSE.
uint64_t SavedState() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kOsxsave = 1u << 27;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kOsxsave) == 0) return 0;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

bool Has(const cpu::CpuFeature& feature) {
  unsigned registers[4] = {};
  if (__get_cpuid_count(feature.leaf, feature.subleaf, &registers[0], &registers[1], &registers[2],
                        &registers[3]) == 0)
    return false;
  return (registers[feature.register_] >> feature.bit & 1) != 0;
}

// The names of the features that the processor lacks.
std::string MissingOf(const cpu::Target& target) {
  std::string out;
  for (const cpu::CpuFeature& feature : target.features)
    if (feature.name != nullptr && !Has(feature))
      out += fmt::format("{}{}", out.empty() ? "" : ", ", feature.name);
  return out;
}

// Requests a state that Linux gives only on request. The permission holds for all threads and
// cannot be returned; requesting it again does nothing.
bool Request(int state) {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, kRequestPermission, static_cast<long>(state)) == 0;
}

bool Runs(const cpu::Target& target, uint64_t saved_state) {
  return (saved_state & target.state) == target.state && MissingOf(target).empty() &&
         (target.requested_state == 0 || Request(target.requested_state));
}

Isa BestIsa() {
  const uint64_t saved_state = SavedState();
  Isa best = Isa::kRef;
  for (const Isa isa : AllIsas()) {
    if (isa == Isa::kRef) continue;
    if (!Runs(TargetOf(isa), saved_state)) break;
    best = isa;
  }
  return best;
}

Uarch ThisUarch() {
  __builtin_cpu_init();
  // The only member of AMD family 19h with AVX-512.
  if (__builtin_cpu_is("amdfam19h") != 0 && __builtin_cpu_supports("avx512f") != 0)
    return Uarch::kZen4;
  // Whether or not the system exposes AMX.
  if (__builtin_cpu_is("intel") != 0 && __builtin_cpu_supports("avx512bf16") != 0 &&
      __builtin_cpu_supports("avx512vbmi") != 0)
    return Uarch::kIntelBf16;
  return Uarch::kOther;
}

Result<Isa> ParseIsa(std::string_view text) {
  std::string choices;
  for (const Isa isa : AllIsas()) {
    if (text == Name(isa)) return isa;
    const bool last = isa == AllIsas().back();
    choices += fmt::format("{}{}", choices.empty() ? "" : last ? " or " : ", ", Name(isa));
  }
  return InvalidArgument(fmt::format("LATTE_ISA: expected {}, found '{}'", choices, text));
}

// "sm_90". Levels that no kernel is compiled for have the name of the GPU's family.
std::string_view GpuName(int level) {
  switch (level) {
    case 80:
      return "sm_80";
    case 86:
      return "sm_86";
    case 89:
      return "sm_89";
    case 90:
      return "sm_90";
    case 100:
      return "sm_100";
    case 120:
      return "sm_120";
    default:
      return "cuda";
  }
}

bool IsKernelName(std::string_view name) {
  for (const KernelInfo& kernel : AllKernels())
    if (MatchName(name, kernel) != NameMatch::kNone) return true;
  return false;
}

// The kernels that LATTE_KERNEL names.
Result<std::vector<std::string>> ForcedKernels() {
  std::vector<std::string> out;
  const char* forced = std::getenv("LATTE_KERNEL");
  std::string_view rest = forced == nullptr ? "" : forced;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view given = rest.substr(0, comma);
    std::string name = CurrentKernelName(given);
    if (!IsKernelName(name))
      return InvalidArgument(fmt::format(
          "LATTE_KERNEL: no kernel is named '{}'; `latte inspect --kernels` lists them", given));
    out.push_back(std::move(name));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return out;
}

}  // namespace

std::span<const Isa> AllIsas() {
  static const auto all = [] {
    std::array<Isa, 1 + std::size(cpu::kTargets)> out;
    for (int level = 0; level < static_cast<int>(std::size(cpu::kTargets)); ++level)
      out[static_cast<size_t>(level) + 1] = {IsaFamily::kX86, level};
    return out;
  }();
  return all;
}

std::string_view Name(Isa isa) {
  if (isa == Isa::kRef) return "ref";
  if (isa.family == IsaFamily::kCuda) return isa.exact ? "sm_90a" : GpuName(isa.level);
  const bool known = std::ranges::find(AllIsas(), isa) != AllIsas().end();
  return known ? TargetOf(isa).name : "?";
}

std::string_view Name(Uarch uarch) {
  switch (uarch) {
    case Uarch::kOther:
      break;
    case Uarch::kZen4:
      return "zen4";
    case Uarch::kIntelBf16:
      return "intel_bf16";
  }
  return "other";
}

Result<Machine> Machine::Detect() {
  Machine machine;
  machine.isa = BestIsa();
  machine.uarch = ThisUarch();
  if (const char* wanted = std::getenv("LATTE_ISA"); wanted != nullptr && *wanted != '\0') {
    LATTE_ASSIGN_OR_RETURN(const Isa isa, ParseIsa(wanted));
    if (!machine.Has(isa))
      return InvalidArgument(
          fmt::format("LATTE_ISA={}: this processor has {} at best", wanted, Name(machine.isa)));
    machine.isa = isa;
  } else if (machine.isa == Isa::kRef) {
    const std::string missing = MissingOf(*cpu::kTargets[0]);
    return Unsupported(fmt::format(
        "this processor, or the system on it, lacks {}; Latte's kernels need AVX2, FMA and F16C "
        "(Intel from Haswell, AMD from Zen on). LATTE_ISA=ref runs the reference kernels, which "
        "are meant for tests and some hundred times slower",
        missing.empty() ? "support of AVX registers" : missing));
  }
  LATTE_ASSIGN_OR_RETURN(machine.forced_kernels, ForcedKernels());
  return machine;
}

Result<Machine> Machine::OfGpu(const cuda::KernelSet& kernels) {
  const cuda::GpuInfo& info = kernels.device().info();
  Machine machine;
  machine.isa = {IsaFamily::kCuda, info.compute_capability};
  machine.gpu = &kernels;
  if (!machine.Has(cuda::kAnyGpu))
    return Unsupported(
        fmt::format("GPU {} ({}): expected compute capability 8.0 or later, found {}.{}",
                    kernels.device().ordinal(), info.name, info.compute_capability / 10,
                    info.compute_capability % 10));
  LATTE_ASSIGN_OR_RETURN(machine.forced_kernels, ForcedKernels());
  return machine;
}

}  // namespace latte

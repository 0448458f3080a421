#include "src/kernels/machine.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <cpuid.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/kernels/registry.h"

namespace latte {
namespace {

// Whether the processor has tiles of bf16 and int8 and Linux lets this process use them. The
// permission holds for all threads and cannot be returned; requesting it again does nothing.
bool HasAmx() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  constexpr unsigned kBf16AndTileAndInt8 = 1u << 22 | 1u << 24 | 1u << 25;
  constexpr unsigned kGfni = 1u << 8;
  if ((edx & kBf16AndTileAndInt8) != kBf16AndTileAndInt8 || (ecx & kGfni) == 0) return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Each test also covers whether the operating system saves the registers.
Isa BestIsa() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                    __builtin_cpu_supports("f16c") != 0;
  if (!avx2) return Isa::kRef;
  const bool avx512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  if (!avx512) return Isa::kAvx2;
  if (__builtin_cpu_supports("avx512vnni") == 0) return Isa::kAvx512;
  if (__builtin_cpu_supports("avx512bf16") == 0 || __builtin_cpu_supports("avx512vbmi") == 0 ||
      __builtin_cpu_supports("gfni") == 0)
    return Isa::kAvx512Vnni;
  return HasAmx() ? Isa::kAmx : Isa::kAvx512Bf16;
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

// The features of AVX2 kernels that the processor lacks.
std::string MissingOfAvx2() {
  std::string out;
  const auto add = [&](bool has, std::string_view name) {
    if (!has) out += fmt::format("{}{}", out.empty() ? "" : ", ", name);
  };
  add(__builtin_cpu_supports("avx2") != 0, "AVX2");
  add(__builtin_cpu_supports("fma") != 0, "FMA");
  add(__builtin_cpu_supports("f16c") != 0, "F16C");
  return out;
}

Result<Isa> ParseIsa(std::string_view text) {
  for (const Isa isa : kAllIsas)
    if (text == Name(isa)) return isa;
  return InvalidArgument(
      fmt::format("LATTE_ISA: expected ref, avx2, avx512, avx512_vnni, avx512_bf16 or amx, "
                  "found '{}'",
                  text));
}

bool IsKernelName(std::string_view name) {
  for (const KernelInfo& kernel : AllKernels())
    if (MatchName(name, kernel) != NameMatch::kNone) return true;
  return false;
}

}  // namespace

std::string_view Name(Isa isa) {
  constexpr std::array<std::string_view, kAllIsas.size()> kNames = {
      "ref", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"};
  const auto found = std::ranges::find(kAllIsas, isa);
  return found == kAllIsas.end() ? "?" : kNames[static_cast<size_t>(found - kAllIsas.begin())];
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
    return Unsupported(fmt::format(
        "this processor, or the system on it, lacks {}; Latte's kernels need AVX2, FMA and F16C "
        "(Intel from Haswell, AMD from Zen on). LATTE_ISA=ref runs the reference kernels, which "
        "are meant for tests and some hundred times slower",
        MissingOfAvx2()));
  }
  const char* forced = std::getenv("LATTE_KERNEL");
  std::string_view rest = forced == nullptr ? "" : forced;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view given = rest.substr(0, comma);
    std::string name = CurrentKernelName(given);
    if (!IsKernelName(name))
      return InvalidArgument(fmt::format(
          "LATTE_KERNEL: no kernel is named '{}'; `latte inspect --kernels` lists them", given));
    machine.forced_kernels.push_back(std::move(name));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return machine;
}

}  // namespace latte

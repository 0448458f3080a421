// Helpers of the tables of CPU kernels.
#pragma once

#include "src/kernels/cpu/launch.h"
#include "src/kernels/cpu/parallel.h"
#include "src/kernels/cpu/targets.h"
#include "src/kernels/cpu/tuning.h"
#include "src/kernels/op.h"
#include "src/kernels/ref/ref.h"
#include "src/kernels/rule_text.h"

namespace latte::cpu {

template <class Op>
bool Always(const typename Op::Shape&) {
  return true;
}

template <class Op>
constexpr Kernel<Op> Reference(std::string_view name,
                               void (*run)(const typename Op::Params&, const Exec&)) {
  return {.name = name, .isa = Isa::kRef, .supports = Always<Op>, .run = run};
}

// The kernel of a target for every shape that the CPU kernels of its op support.
template <class Op, const Target& kTarget,
          void (*kLaunch)(const Target&, const typename Op::Params&, const Exec&)>
constexpr Kernel<Op> General(std::string_view name, Isa isa) {
  return {.name = name,
          .isa = isa,
          .supports = [](const typename Op::Shape& shape) { return Supports(shape); },
          .run = [](const typename Op::Params& p, const Exec& exec) { kLaunch(kTarget, p, exec); }};
}

// The limits of a kernel without limits.
inline constexpr auto kAnySize = [](const auto&) { return true; };

// A rule: whether a core reads memory faster through many streams.
constexpr bool HasManyDramStreams(Uarch uarch) {
  return kTunings[static_cast<size_t>(uarch)].many_dram_streams;
}
inline Clause HasManyDramStreams(const UarchName&) {
  return {"many DRAM streams", "one DRAM stream"};
}

// "6 × 4"; M for all rows of A; "16–64 × 3–12" for tiles of several sizes.
template <const auto& kCode>
std::string TileText() {
  const TileSides& tile = kCode.tile;
  const auto side = [](int64_t least, int64_t most) {
    if (most > least) return fmt::format("{}–{}", least, most);
    return least == 0 ? "M" : std::to_string(least);
  };
  return fmt::format("{} × {}", side(tile.m, tile.most_m), side(tile.n, tile.most_n));
}

}  // namespace latte::cpu

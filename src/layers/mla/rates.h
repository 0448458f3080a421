// How fast a machine evaluates the parts of attention: what paths are priced with. Measured by
// `latte bench calibrate`; without that, figures typical of the instruction set.
//
// Rates do not depend on the number of threads, because what is chosen must not: bytes are the same
// for every thread count. Only their ratios matter.
#pragma once

#include <string>
#include <vector>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"
#include "src/kernels/machine.h"

namespace latte {

// Rates at rising sizes; linear in the logarithm of the size between them, constant beyond.
struct RateCurve {
  struct Point {
    double size = 1;
    double gflops = 1;
  };
  std::vector<Point> points;  // at least one

  double At(double size) const;
};

struct MlaRates {
  RateCurve expand;  // latents to keys and values; size: keys
  RateCurve mha;     // expanded attention; size: new tokens
  RateCurve absorb;  // q_nope·W_UK and o·W_UV; size: new tokens
  RateCurve decode;  // attention over latents; size: heads × new tokens, which share a key
  double memory_gbps = 20;

  // Figures typical of `isa` with bf16 weights and cache.
  static MlaRates Typical(Isa isa);
};

// For `path`, and back. Errors of Load: of reading and parsing; kCorrupt for rates that are not
// positive or sizes that do not rise; kInvalidArgument for rates measured with another instruction
// set.
JsonOut ToJson(const MlaRates& rates, Isa isa);
[[nodiscard]] Result<MlaRates> LoadRates(const std::string& path, Isa isa);

// Where `latte bench calibrate` writes: $LATTE_RATES, else latte/rates.json in $XDG_CACHE_HOME or
// ~/.cache. Empty when there is no home.
std::string DefaultRatesPath();

struct FoundRates {
  MlaRates rates;
  std::string warning;  // for the user: why a file is left aside; mostly empty
};

// The rates in the default file, or the typical ones where it has none to give. Nobody needs the
// file, so a bad one is a warning. A file of the home folder that is not there, may not be entered
// or was measured with another instruction set is not even that; one that $LATTE_RATES names is.
FoundRates MachineRates(Isa isa);

}  // namespace latte

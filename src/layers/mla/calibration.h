// The speed of this machine for each part of attention, for the choice of a path.
// `latte bench calibrate` measures it; without a measurement, values typical of the instruction set
// are used.
//
// The rates do not depend on the number of threads, because the choice must not: the output bytes
// are the same for every thread count. Only ratios of rates matter.
#pragma once

#include <string>
#include <vector>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"
#include "src/kernels/machine.h"

namespace latte {

// Rates at rising sizes, interpolated linearly in the logarithm of the size and constant beyond the
// ends.
struct RateCurve {
  struct Point {
    double size = 1;
    double gflops = 1;
  };
  std::vector<Point> points;  // at least one

  double At(double size) const;
};

struct MlaRates {
  RateCurve expand;        // latents to keys and values; size: keys
  RateCurve mha;           // expanded attention; size: new tokens
  RateCurve absorb;        // q_nope·W_UK and o·W_UV; size: new tokens
  RateCurve decode;        // attention over latents; size: heads × new tokens, which share a key
  RateCurve indexer = {};  // scores of index keys and the choice of the best; size: new tokens
  double memory_gbps = 20;

  // Values typical of the instruction set with bf16 weights and cache.
  static MlaRates Typical(const Machine& machine);
};

// The JSON form of rates, and the rates of a file. Where a file has no rate of the indexer, the
// typical one is used: it prices sparse attention and chooses no path. Errors of LoadRates: from
// reading and parsing; kCorrupt for rates that are not positive or sizes that do not rise;
// kInvalidArgument for rates of another instruction set.
JsonOut ToJson(const MlaRates& rates, const Machine& machine);
[[nodiscard]] Result<MlaRates> LoadRates(const std::string& path, const Machine& machine);

// The file that `latte bench calibrate` writes: $LATTE_RATES, else latte/rates.json in
// $XDG_CACHE_HOME or ~/.cache. Empty without a home folder.
std::string DefaultRatesPath();

struct FoundRates {
  MlaRates rates;
  std::string warning;  // for the user: why a file is ignored; usually empty
};

// The rates of the default file, or the typical rates. A bad file is a warning, not an error,
// because no file is needed. A file in the home folder that is missing, unreadable or of another
// instruction set gives no warning; a file that $LATTE_RATES names does.
FoundRates MachineRates(const Machine& machine);

}  // namespace latte

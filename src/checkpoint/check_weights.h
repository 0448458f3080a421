// Whether the stored weights are numbers: a NaN or an infinity anywhere in them spreads to every
// logit. Reads every byte, so it is asked for, not done at every start. Judges no value that is
// finite.
#pragma once

#include "latte/status.h"

#include "src/checkpoint/safetensors.h"

namespace latte {

// Errors: kCorrupt naming file, tensor, index and value of the first one that is not finite.
// Integer types have no such values; F4 and F6 have none either.
// Cost: reads the checkpoint once, at the speed of memory or of the disk.
[[nodiscard]] Status CheckWeights(const Checkpoint& checkpoint);

}  // namespace latte

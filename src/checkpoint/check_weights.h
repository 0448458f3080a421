// Checks that the stored weights are finite: a NaN or an infinity spreads to every logit. Reads
// every byte, so it runs on request only. Does not judge finite values.
#pragma once

#include <cstdint>
#include <functional>

#include "latte/status.h"

#include "src/checkpoint/checkpoint.h"

namespace latte {

// Errors: kCorrupt naming file, tensor and index of the first value that is not finite, or of the
// first block with such a value.
// Integer types, F4 and F6 have no such values.
// Cost: reads the checkpoint once, at the speed of memory or of the disk. Tells `checked` after
// each tensor.
using BytesChecked = std::function<void(int64_t done, int64_t total)>;
[[nodiscard]] Status CheckWeights(const Checkpoint& checkpoint, const BytesChecked& checked = {});

}  // namespace latte

// Keys of quantization_config that several formats have.
#pragma once

#include <cstdint>
#include <string_view>

#include "latte/status.h"

#include "src/base/json.h"
#include "src/checkpoint/formats/common/weight_format.h"

namespace latte {

// kUnsupported "<path>.<key>: expected <expected>, found <found>".
tl::unexpected<Error> NotRead(const Json& json, std::string_view key, std::string_view expected,
                              std::string_view found);

// Requires `expected` as the value of a key, if the key is present. Errors: NotRead.
[[nodiscard]] Status Demand(const Json& json, std::string_view key, std::string_view expected);

// The integer `key`, required. Errors: kCorrupt if it is absent or outside [min, max].
[[nodiscard]] Result<int64_t> IntIn(const Json& json, std::string_view key, int64_t min,
                                    int64_t max);

// group_size: the columns that share a scale, or QuantScheme::kAll for −1. It is even, because two
// 4-bit values share a byte. Errors: kCorrupt.
[[nodiscard]] Result<int64_t> GroupSize(const Json& json);

}  // namespace latte

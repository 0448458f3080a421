// What a caller asks for, and what comes back: plain data.
#pragma once

#include <cstdint>
#include <string_view>

#include "latte/status.h"

namespace latte {

// How the next token is drawn. Filters apply in this order: temperature, min_p, top_k, top_p.
struct SamplingParams {
  double temperature = 1.0;  // 0: always the likeliest token
  int64_t top_k = 0;         // keep the k likeliest tokens; 0: all
  double top_p = 1.0;  // keep the likeliest tokens that together reach this probability; (0, 1]
  double min_p = 0.0;  // drop tokens below this share of the likeliest one's probability; [0, 1]
  uint64_t seed = 0;   // the draw depends on (seed, position) alone

  // Errors: kInvalidArgument naming the field, its value and the accepted range.
  [[nodiscard]] Status Validate() const;
};

enum class FinishReason {
  kStop,    // an end-of-sequence token
  kLength,  // the token limit or the end of the context
};

std::string_view Name(FinishReason reason);  // "stop"

}  // namespace latte

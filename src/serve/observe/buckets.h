// Upper bounds of histogram buckets. vLLM's, from its vllm/v1/metrics/loggers.py, but for
// StepBounds.
#pragma once

#include <cstdint>
#include <vector>

namespace latte {

using Bounds = std::vector<double>;

const Bounds& FirstTokenBounds();  // seconds
const Bounds& TokenBounds();       // seconds between tokens
const Bounds& RequestBounds();     // seconds of a request and its parts
const Bounds& IterationBounds();   // tokens of a step
const Bounds& StepBounds();        // seconds of a step

// Tokens: 1, 2, 5, 10, … up to `most`.
Bounds LengthBounds(int64_t most);

}  // namespace latte

// Teacher-forced scoring: the probability that the model assigns to a given sequence.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/engine/core/given_sequence.h"
#include "src/jobs/job_progress.h"

namespace latte {

struct ScoreResult {
  std::vector<double> logprobs;  // [T−1] natural log of P(token i+1 | tokens 0 … i)
  double total = 0;              // their sum
};

// Appends `tokens` to an empty sequence; with `logits_path`, writes the logits as float32 [T,
// vocab]. Calls `interrupted` and `progress`, in tokens, after every step.
// Errors: of GivenSequence::AppendPrompt and NpyWriter; kCancelled if `interrupted` returns true.
[[nodiscard]] Result<ScoreResult> Score(GivenSequence& sequence, std::span<const int32_t> tokens,
                                        int64_t vocab,
                                        const std::optional<std::string>& logits_path,
                                        const std::function<bool()>& interrupted = {},
                                        const JobProgress& progress = {});

struct WindowedScore {
  int64_t windows = 0;
  int64_t scored = 0;  // tokens that have a probability: not the first of a window
  double total = 0;    // the sum of their log-probabilities
};

// Scores a text of any length in windows of at most `window` tokens. Each is a sequence of its own
// that begins with `start`, if given; the windows do not overlap, so every token of the text counts
// once. Errors: of Score. Requires: window ≥ 2, and room for it in `sequence`.
[[nodiscard]] Result<WindowedScore> ScoreWindows(GivenSequence& sequence,
                                                 std::span<const int32_t> text,
                                                 std::optional<int32_t> start, int64_t window,
                                                 int64_t vocab,
                                                 const std::function<bool()>& interrupted = {},
                                                 const JobProgress& progress = {});

}  // namespace latte

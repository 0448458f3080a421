// Computes a given sequence in chunks, for its logits. `score` and the tests that compare logits
// run it without an engine.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "src/engine/settings.h"
#include "src/engine/step/runner.h"

namespace latte {

// Engine-thread only.
class GivenSequence {
 public:
  // `settings`: of ResolveOptionsForOne, for the longest sequence. A step computes max_batch_tokens
  // tokens. Model and machine must outlive it. `followers`: of the leader of a group of ranks.
  // Errors: kExhausted when the cache does not fit; kUnavailable for a lost rank, as in all
  // functions.
  [[nodiscard]] static Result<std::unique_ptr<GivenSequence>> Create(
      const Model& model, const Machine& machine, const Settings& settings,
      StepAnnouncer* followers = nullptr);

  // Receives logits [M, vocab] of the tokens at [first, first + M) of the sequence, in order; its
  // error ends the call.
  using LogitsSink = std::function<Status(int64_t first, const TensorView& logits)>;

  // Appends `tokens` as a prompt, by the path that the settings choose for it.
  // Errors: kInvalidArgument for no tokens, a token outside the vocabulary, or more tokens than
  // there is room for; kUnsupported when f16 arithmetic overflows, which makes the sequence
  // useless.
  [[nodiscard]] Status AppendPrompt(std::span<const int32_t> tokens, const LogitsSink& sink);

  // Appends `token` by the path of generated tokens. Errors: as AppendPrompt.
  [[nodiscard]] Status AppendGenerated(int32_t token, const LogitsSink& sink);

  // Forgets all tokens: the next ones begin a sequence.
  void Clear() { length_ = 0; }

  int threads() const { return threads_.threads(); }
  int64_t workspace_bytes() const { return workspace_.capacity_bytes(); }

 private:
  GivenSequence(const Model& model, const Machine& machine, const Settings& settings,
                LatentCache cache, StepAnnouncer* followers);
  Status Append(std::span<const int32_t> tokens, MlaPath path, const LogitsSink& sink);
  Status Compute(std::span<const int32_t> chunk, MlaPath path, const LogitsSink& sink);
  Status CheckTokens(std::span<const int32_t> tokens) const;
  Status CheckRange(std::span<const int32_t> finite, int64_t first) const;

  const Model& model_;
  Settings settings_;
  ThreadPool threads_;
  LatentCache cache_;
  Workspace workspace_;
  Step step_;
  Runner runner_;
  std::vector<int32_t> pages_;  // all of the cache
  int64_t length_ = 0;
};

}  // namespace latte

// From drawn tokens to what the caller is told: one state per answer, one event per token.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "src/engine/output/answer_text.h"
#include "src/engine/sampling/sampler.h"
#include "src/engine/schedule/sequence.h"
#include "src/engine/submission.h"

namespace latte {

// The answer that a sequence becomes.
struct Answer {
  std::shared_ptr<const Submission> submission;  // shared by the answers of a request
  int choice = 0;
  SamplingParams params;  // with the seed of this choice
  TokenHistory history;   // empty where there are no penalties
  std::optional<AnswerText> text;
  int64_t generated = 0;
  int64_t cached_tokens = 0;                   // of the prompt
  std::vector<TokenLogprobs> prompt_logprobs;  // until the first event takes them

  const Request& request() const { return submission->request; }
  RequestId id() const { return submission->id; }
};

// Engine-thread only.
class Answers {
 public:
  explicit Answers(const RequestRules& rules) : rules_(rules) {}

  void Add(SequenceId id, Submission submission);

  // Another choice of the same request, before anything was drawn.
  void Fork(SequenceId id, SequenceId copy, int choice);

  Answer& At(SequenceId id);

  // Ids that must not be drawn now: those that would end the answer below min_tokens.
  std::span<const int32_t> Banned(const Answer& answer) const;

  // Takes a drawn token and writes its event. Returns whether the answer ends by it; then it is
  // gone. `length`: of the sequence with the token.
  bool Accept(SequenceId id, const Drawn& drawn, int64_t length);

  // Ends an answer and `unforked` − 1 more choices of its request that were still to come.
  void End(SequenceId id, FinishReason reason, const Error& error, int unforked = 1);

  // Sequences of a request.
  std::vector<SequenceId> Of(RequestId id) const;

  std::vector<TokenEvent>& events() { return events_; }
  int64_t finished() const { return finished_; }
  int64_t failed() const { return failed_; }
  int64_t cancelled() const { return cancelled_; }
  int64_t generated() const { return generated_; }

 private:
  TokenEvent NewEvent(Answer& answer);
  bool EndsBy(const Answer& answer, int32_t token) const;
  void Finish(SequenceId id, TokenEvent event);

  RequestRules rules_;
  std::map<SequenceId, Answer> answers_;
  std::vector<TokenEvent> events_;
  int64_t finished_ = 0;
  int64_t failed_ = 0;
  int64_t cancelled_ = 0;
  int64_t generated_ = 0;
};

}  // namespace latte

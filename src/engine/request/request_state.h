// A request from Submit to its last event, in one place: the engine owns it, the scheduler sees the
// sequences of its outputs.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "latte/request.h"

#include "src/checkpoint/config/model_config.h"
#include "src/engine/grammar/grammar_service.h"
#include "src/engine/grammar/mask_worker.h"
#include "src/engine/output/answer_text.h"
#include "src/engine/sampling/sampler.h"
#include "src/engine/schedule/sequence.h"
#include "src/engine/settings.h"
#include "src/engine/speculate/draft_policy.h"
#include "src/text/tokenizer.h"

namespace latte {

struct RequestState;

// Hidden states of the last tokens of a sequence, kept for a drafter that has not written its cache
// rows of these tokens yet.
struct DraftRows {
  int64_t begin = 0;           // the first of the tokens
  std::vector<int32_t> slots;  // of each: the row of Runner::kept

  int64_t end() const { return begin + std::ssize(slots); }
};

// One of the answers to a request.
struct Output {
  RequestState* state = nullptr;
  int choice = 0;
  Sequence sequence;
  SamplingParams params;  // with the seed of this choice
  TokenHistory history;   // empty where there are no penalties
  std::optional<AnswerText> text;
  std::shared_ptr<AnswerGrammar> grammar;  // null: any text
  int64_t generated = 0;
  int64_t drafted = 0;                         // guesses that a step computed
  int64_t accepted = 0;                        // of them, tokens of the answer
  DraftRows draft_rows;                        // the drafter's
  DraftRecord draft_record;                    // the policy's
  int64_t cached_tokens = 0;                   // of the prompt
  std::vector<TokenLogprobs> prompt_logprobs;  // until the first event takes them

  const Request& request() const;
  bool ended() const { return sequence.state == SequenceState::kEnded; }
  std::span<const int32_t> prompt() const {
    return std::span(sequence.tokens).first(static_cast<size_t>(sequence.prompt_len));
  }
};

struct RequestState {
  RequestId id = 0;
  Request request;                               // tokens and salt are in the sequences
  std::vector<int32_t> stop_token_ids;           // that end an output
  std::vector<std::unique_ptr<Output>> outputs;  // by choice; at first only choice 0
  std::shared_ptr<GrammarJob> grammar;           // of request.grammar; null: none

  std::chrono::steady_clock::time_point submitted = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point admitted;  // to its first step
  double queue_seconds = 0;                        // as TokenEvent has them
  double prefill_seconds = 0;

  bool ended() const;  // every output has

  // Another output after the same prompt, before anything was sampled: a copy of choice 0, which
  // shares its grammar's state.
  Output& Fork(SequenceId id);
};

inline const Request& Output::request() const { return state->request; }

// The data that a request is checked against. Immutable; all must outlive it.
struct RequestRules {
  const ModelConfig* config = nullptr;
  const Settings* settings = nullptr;
  const Tokenizer* tokenizer = nullptr;  // null: requests come as tokens, answers have no text
};

// Checks a request and turns its prompt into tokens; its first output's sequence is ready for the
// scheduler, but for the id. Thread-safe. Errors: of Request::Validate and Tokenizer::Encode;
// kInvalidArgument for tokens outside the vocabulary, an empty prompt, one that leaves no room for
// an answer, more answers than run at once, or text where there is no tokenizer.
[[nodiscard]] Result<std::unique_ptr<RequestState>> MakeRequestState(Request request,
                                                                     const RequestRules& rules);

}  // namespace latte

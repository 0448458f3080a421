// A request that can be served: checked, in tokens.
#pragma once

#include "latte/request.h"

#include "src/checkpoint/config/model_config.h"
#include "src/engine/settings.h"
#include "src/text/tokenizer.h"

namespace latte {

struct Submission {
  RequestId id = 0;
  Request request;              // tokens moved out
  std::vector<int32_t> prompt;  // not empty
  int64_t max_len = 0;          // prompt and answer
  std::vector<int32_t> ends;    // tokens that end the answer

  // What `echo` puts before the answer; nothing without a tokenizer.
  std::string EchoText(const Tokenizer* tokenizer) const;
};

// What a request is checked against. Immutable; all must outlive it.
struct RequestRules {
  const ModelConfig* config = nullptr;
  const Settings* settings = nullptr;
  const Tokenizer* tokenizer = nullptr;  // null: requests come as tokens, answers have no text
};

// Thread-safe. Errors: of Request::Validate and Tokenizer::Encode; kInvalidArgument for tokens
// outside the vocabulary, an empty prompt, one that leaves no room for an answer, more answers than
// run at once, or text where there is no tokenizer.
[[nodiscard]] Result<Submission> Prepare(Request request, const RequestRules& rules);

}  // namespace latte

// Bodies of the OpenAI API's two completion endpoints → latte::Request. Null is absent, at every
// level, and a value that changes no answer is taken (neutral_fields.h). All else is strict: a
// field that is unknown, of the wrong type or out of range is an error that names it. Knows nothing
// of files and connections.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/request.h"

#include "src/base/json.h"
#include "src/chat/prompt.h"
#include "src/checkpoint/config/generation_config.h"
#include "src/checkpoint/model_files.h"
#include "src/text/tokenizer.h"

namespace latte {

enum class OpenAiEndpoint { kChat, kCompletions };

std::string_view Url(OpenAiEndpoint endpoint);  // "/v1/chat/completions"
std::optional<OpenAiEndpoint> FindEndpoint(std::string_view url);

// What requests are understood with. Immutable, thread-safe.
struct OpenAiModel {
  std::string name;  // of answers to requests that name no model
  Tokenizer tokenizer;
  Result<ChatPromptBuilder> chat;  // an error: the checkpoint has no chat format
  GenerationDefaults defaults;     // of what a request does not say
  uint64_t seed = 0;               // of requests that give none

  // Errors: of LoadGenerationDefaults.
  [[nodiscard]] static Result<OpenAiModel> Create(const std::string& name, const ModelFiles& files);
};

// What the form of the answer depends on.
struct OpenAiReply {
  OpenAiEndpoint endpoint = OpenAiEndpoint::kChat;
  std::string model;
  bool stream = false;
  int n = 1;
  int logprobs = -1;         // alternatives per token; −1: none
  int prompt_logprobs = -1;  // the same, of the prompt
  bool echo = false;
  bool keep_special = false;  // special tokens are part of the answer's text
  bool in_thought = false;    // the prompt ends inside <think>
  int32_t first_token = 0;    // of the prompt
  bool first_is_bos = false;  // which is no part of the prompt's text
};

struct OpenAiRequest {
  Request request;
  OpenAiReply reply;
  std::vector<std::string> notes;  // what was taken, but has no effect with this model
};

// Errors: kInvalidArgument and kUnsupported naming the field. Whether ids lie in the vocabulary and
// whether the prompt fits the context is for Engine::Submit.
[[nodiscard]] Result<OpenAiRequest> ParseOpenAiRequest(OpenAiEndpoint endpoint, const Json& body,
                                                       const OpenAiModel& model);

}  // namespace latte

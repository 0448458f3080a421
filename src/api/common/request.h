// Parses bodies of the OpenAI API's endpoints into latte::Request. Null counts as
// absent at every level, and values that change no answer are accepted (neutral_fields.h).
// Everything else is strict: an unknown field, a wrong type or a value out of range is an error
// that names the field. Knows nothing of files and connections.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/request.h"

#include "src/base/json.h"
#include "src/chat/prompt.h"
#include "src/chat/tools/tool_call_parser.h"
#include "src/checkpoint/config/generation_config.h"
#include "src/checkpoint/model_files.h"
#include "src/text/tokenizer.h"

namespace latte {

enum class OpenAiEndpoint { kChat, kCompletions, kResponses, kMessages };

std::string_view Url(OpenAiEndpoint endpoint);  // "/v1/chat/completions"
std::optional<OpenAiEndpoint> FindEndpoint(std::string_view url);

// The model data that requests are parsed with. Immutable, thread-safe.
struct OpenAiModel {
  std::string name;  // the model name in answers to requests that name none
  Tokenizer tokenizer;
  Result<ChatPromptBuilder> chat;           // an error if the checkpoint has no chat format
  GenerationDefaults defaults;              // for fields that a request does not set
  uint64_t seed = 0;                        // for requests without a seed
  std::function<uint64_t()> new_seed = {};  // instead of `seed`, if not empty; thread-safe
  std::string fingerprint = {};  // "fp_…" of the configuration; answers have it if not empty

  // Errors: of LoadGenerationDefaults and ReadFile.
  [[nodiscard]] static Result<OpenAiModel> Create(const std::string& name, const ModelFiles& files);

  // For requests that come over HTTP: without generation_config.json, they are sampled at the API's temperature.
  void UseApiDefaults();

  // Replaces the chat template of the checkpoint. Errors: of ChatPromptBuilder::Create.
  [[nodiscard]] Status UseChatTemplate(const std::string& text, const ModelConfig& config);
};

// Limits that a server sets.
struct OpenAiRules {
  int max_n = 64;              // answers per prompt
  int64_t max_prompts = 1024;  // prompts of a completion request
  int64_t max_answers = 4096;  // prompts × n
  int max_logprobs = 20;       // alternatives per token
  // Of an answer that is not streamed, and of the log-probabilities of a prompt.
  int64_t max_answer_bytes = int64_t{256} << 20;
  int64_t max_model_len = 0;  // tokens of prompt and answer; longer texts are not tokenised. 0: any
  std::span<const std::string_view> other_fields = {};  // of the body that the caller reads
  int min_priority = 0;                                 // lower ones count as this one
};

// One prompt of a request, as the format of its answer needs it.
struct OpenAiPrompt {
  int32_t first_token = 0;
  bool first_is_bos = false;  // that token is not part of the prompt's text
};

struct ResponsesReply;  // responses/reply.h

// The settings of a request that determine the format of its answer.
struct OpenAiReply {
  OpenAiEndpoint endpoint = OpenAiEndpoint::kChat;
  std::string model;
  std::string fingerprint;  // OpenAiModel::fingerprint
  bool stream = false;
  int64_t max_answer_bytes = 0;  // OpenAiRules::max_answer_bytes
  int n = 1;
  int logprobs = -1;         // alternatives per token; −1: no logprobs
  int prompt_logprobs = -1;  // as logprobs, for the prompt
  bool echo = false;
  bool keep_special = false;      // the text of the answer includes special tokens
  bool in_thought = false;        // the prompt ends inside <think>
  bool include_usage = false;     // a stream ends with the usage
  bool continuous_usage = false;  // and has it in every chunk
  std::vector<OpenAiPrompt> prompts = {{}};
  // How the answer to a chat with tools writes calls; nullopt: all of it is text.
  std::optional<ToolFormat> calls;
  std::shared_ptr<const KnownFunctions> functions;  // that calls may name
  bool parallel_calls = true;
  std::shared_ptr<const ResponsesReply> responses;  // of /v1/responses
};

struct OpenAiRequest {
  std::vector<Request> requests;  // one per prompt
  OpenAiReply reply;
  std::vector<std::string> notes;    // accepted settings that have no effect with this model
  std::vector<std::string> ignored;  // fields of the API that never have an effect
};

// Errors: kInvalidArgument and kUnsupported naming the field. Engine::Submit checks that ids are in
// the vocabulary and that the prompt fits the context.
[[nodiscard]] Result<OpenAiRequest> ParseOpenAiRequest(OpenAiEndpoint endpoint, const Json& body,
                                                       const OpenAiModel& model,
                                                       const OpenAiRules& rules = {});

// The same from the text of a body, which any client may have written.
// Errors: also kInvalidArgument for what is no JSON, repeats a key, or is nested too deeply;
// kExhausted if memory runs out.
[[nodiscard]] Result<OpenAiRequest> ParseOpenAiBody(OpenAiEndpoint endpoint, std::string_view body,
                                                    const OpenAiModel& model,
                                                    const OpenAiRules& rules = {});

}  // namespace latte

// The parts of a request that all APIs share: the model, the limits of a server, the resulting
// requests of the engine, and the form of the answer.
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

enum class ApiEndpoint { kChat, kCompletions, kResponses, kMessages };

std::string_view Url(ApiEndpoint endpoint);  // "/v1/chat/completions"
std::optional<ApiEndpoint> FindEndpoint(std::string_view url);

// The model data that requests are parsed with. Immutable, thread-safe.
struct ApiModel {
  std::string name;  // the model name in answers to requests that name none
  Tokenizer tokenizer;
  Result<ChatPromptBuilder> chat;           // an error if the checkpoint has no chat format
  GenerationDefaults defaults;              // for fields that a request does not set
  uint64_t seed = 0;                        // for requests without a seed
  std::function<uint64_t()> new_seed = {};  // instead of `seed`, if not empty; thread-safe
  std::string fingerprint = {};  // "fp_…" of the configuration; answers have it if not empty

  // Errors: of LoadGenerationDefaults and ReadFile.
  [[nodiscard]] static Result<ApiModel> Create(const std::string& name, const ModelFiles& files);

  // For requests that come over HTTP: without generation_config.json, they are sampled at the API's
  // temperature.
  void UseApiDefaults();

  // Replaces the chat template of the checkpoint. Errors: of ChatPromptBuilder::Create.
  [[nodiscard]] Status UseChatTemplate(const std::string& text, const ModelConfig& config);
};

// Limits that a server sets.
struct ApiRules {
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
struct ApiPrompt {
  int32_t first_token = 0;
  bool first_is_bos = false;  // that token is not part of the prompt's text
};

struct ResponsesReply;  // responses/reply.h

// The settings of a request that determine the format of its answer.
struct ApiReply {
  ApiEndpoint endpoint = ApiEndpoint::kChat;
  std::string model;
  std::string fingerprint;  // ApiModel::fingerprint
  bool stream = false;
  int64_t max_answer_bytes = 0;  // ApiRules::max_answer_bytes
  int n = 1;
  int logprobs = -1;         // alternatives per token; −1: no logprobs
  int prompt_logprobs = -1;  // as logprobs, for the prompt
  bool echo = false;
  bool keep_special = false;      // the text of the answer includes special tokens
  bool in_thought = false;        // the prompt ends inside <think>
  bool include_usage = false;     // a stream ends with the usage
  bool continuous_usage = false;  // and has it in every chunk
  std::vector<ApiPrompt> prompts = {{}};
  // How the answer to a chat with tools writes calls; nullopt: all of it is text.
  std::optional<ToolFormat> calls;
  std::shared_ptr<const KnownFunctions> functions;  // that calls may name
  bool parallel_calls = true;
  std::shared_ptr<const ResponsesReply> responses;  // of /v1/responses
};

struct ApiRequest {
  std::vector<Request> requests;  // one per prompt
  ApiReply reply;
  std::vector<std::string> notes;    // accepted settings that have no effect with this model
  std::vector<std::string> ignored;  // fields of the API that never have an effect
};

}  // namespace latte

// Descriptions of the server and of its model, and the tools around the tokenizer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "latte/options.h"
#include "latte/status.h"

#include "src/api/common/request.h"
#include "src/serve/memory_plan.h"

namespace latte {

// The model, once it is loaded.
struct ServedModel {
  std::vector<std::string> names;   // at least one
  int64_t created = 0;              // seconds since 1970
  int64_t max_model_len = 0;        // tokens of prompt and answer together
  int64_t mha_bytes_per_token = 0;  // if K and V of every head were cached, in engine.dtype
  EngineOptions engine;             // resolved
  MemoryPlan plan;
  std::string version;  // of Latte
};

// GET /v1/models: one entry for every name.
std::string ModelsBody(const ServedModel& served);

// GET /v1/models/NAME. Errors: kNotFound.
[[nodiscard]] Result<std::string> ModelBody(const ServedModel& served, std::string_view name);

// GET /props: model, context, chat format and template, sampling of requests that set none, options
// of the engine, cache bytes of a token, bytes of the memory plan.
std::string PropsBody(const ServedModel& served, const ApiModel& model);

// GET /version.
std::string VersionBody(std::string_view version);

// The following are for a worker thread: they take as long as their text is. Errors of all:
// kInvalidArgument naming the field, or for an answer of more than `max_bytes`.

// POST /tokenize: {"prompt" or "content": text, "add_special_tokens" or "add_special": true,
// "parse_special": false, "return_token_strs" or "with_pieces": false}, or the body of a chat
// request. → {"count", "max_model_len", "tokens", "token_strs"}.
[[nodiscard]] Result<std::string> TokenizeBody(std::string_view body, const ServedModel& served,
                                               const ApiModel& model, int64_t max_bytes);

// POST /detokenize: {"tokens": […]} → {"prompt", "content"}, both the text.
[[nodiscard]] Result<std::string> DetokenizeBody(std::string_view body, const ApiModel& model,
                                                 int64_t max_bytes);

// POST /apply-template: the body of a chat request → {"prompt": text}.
[[nodiscard]] Result<std::string> ApplyTemplateBody(std::string_view body, const ApiModel& model);

}  // namespace latte

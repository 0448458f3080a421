#include "src/embed/embedded_model.h"

#include <atomic>
#include <random>
#include <utility>

#include "src/api/request.h"
#include "src/base/json_out.h"
#include "src/base/random.h"

namespace latte {
namespace {

// Seeds made of a random number and the number of earlier calls. Thread-safe.
std::function<uint64_t()> DrawnSeeds() {
  const auto next = std::make_shared<std::atomic<uint64_t>>(std::random_device()());
  return [next] { return Mix64(next->fetch_add(1)); };
}

template <class T>
JsonOut OrNull(const std::optional<T>& value) {
  return value ? JsonOut(*value) : JsonOut(nullptr);
}

JsonOut SizesJson(const ModelConfig& config) {
  const MlaDims& mla = config.mla;
  return {{"layers", config.layers},
          {"hidden", mla.d},
          {"heads", mla.h},
          {"query_latent", mla.cq},
          {"latent", mla.c},
          {"nope_width", mla.n},
          {"rope_width", mla.r},
          {"value_width", mla.v},
          {"experts", config.moe.experts},
          {"experts_per_token", config.moe.chosen},
          {"mtp_layers", config.mtp_layers}};
}

JsonOut DefaultsJson(const GenerationDefaults& defaults) {
  return {{"recommended", defaults.recommended},
          {"temperature", defaults.temperature},
          {"top_k", defaults.top_k},
          {"top_p", defaults.top_p},
          {"min_p", defaults.min_p},
          {"repetition_penalty", defaults.repetition_penalty}};
}

JsonOut SpecialTokensJson(const Tokenizer& tokenizer) {
  JsonOut out = JsonOut::object();
  for (const int32_t id : tokenizer.AddedIds())
    if (tokenizer.IsSpecial(id)) out[std::string(tokenizer.TokenBytes(id))] = id;
  return out;
}

JsonOut ChatJson(const Result<ChatPromptBuilder>& chat) {
  if (!chat) return {{"format", nullptr}, {"problem", chat.error().message}};
  return {{"format", ChatFormatName(chat->format())},
          {"template", chat->chat_template()},
          {"has_thinking_switch", chat->has_thinking_switch()},
          {"thinks_by_itself", chat->thinks_by_itself()},
          {"reads_tool_calls", chat->tool_format().has_value()},
          {"stop_token_ids", chat->stop_tokens()}};
}

}  // namespace

Result<std::shared_ptr<const EmbeddedModel>> EmbeddedModel::Open(const std::string& model) {
  LATTE_ASSIGN_OR_RETURN(ModelFiles files, ModelFiles::Load(model));
  LATTE_ASSIGN_OR_RETURN(ApiModel api, ApiModel::Create(model, files));
  api.UseApiDefaults();
  api.new_seed = DrawnSeeds();
  return std::shared_ptr<const EmbeddedModel>(new EmbeddedModel(std::move(files), std::move(api)));
}

Result<std::vector<int32_t>> EmbeddedModel::Encode(std::string_view text, bool add_bos,
                                                   bool parse_special) const {
  const Tokenizer& tokenizer = files_.tokenizer;
  return tokenizer.Encode(
      text, {.add_bos = add_bos && tokenizer.adds_bos(), .parse_special = parse_special});
}

Result<std::string> EmbeddedModel::Decode(std::span<const int32_t> tokens,
                                          bool skip_special) const {
  return files_.tokenizer.Decode(tokens, skip_special);
}

Result<std::vector<int32_t>> EmbeddedModel::ChatPrompt(std::string_view body) const {
  LATTE_ASSIGN_OR_RETURN(ApiRequest request, ParseApiBody(ApiEndpoint::kChat, body, api_));
  return std::move(request.requests.front().tokens);
}

Request EmbeddedModel::DefaultRequest() const {
  Request out;
  // Without the file, the engine's own default counts, not the API's.
  if (api_.defaults.recommended) api_.defaults.ApplyTo(&out.sampling);
  return out;
}

std::string EmbeddedModel::InfoJson() const {
  const ModelConfig& config = files_.config;
  const Tokenizer& tokenizer = files_.tokenizer;
  return Dump({{"model", api_.name},
               {"path", files_.dir},
               {"model_type", config.model_type},
               {"architecture", config.architecture},
               {"vocab_size", config.vocab},
               {"context", config.max_position},
               {"sizes", SizesJson(config)},
               {"bos_token_id", OrNull(tokenizer.bos_id())},
               {"eos_token_ids", config.eos},
               {"pad_token_id", OrNull(tokenizer.pad_id())},
               {"special_tokens", SpecialTokensJson(tokenizer)},
               {"chat", ChatJson(api_.chat)},
               {"generation_defaults", DefaultsJson(api_.defaults)},
               {"fingerprint", api_.fingerprint}});
}

}  // namespace latte

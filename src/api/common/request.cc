#include "src/api/common/request.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "src/checkpoint/config/model_config.h"

namespace latte {
namespace {

// The same in the APIs of OpenAI and Anthropic.
constexpr double kApiTemperature = 1;

struct Address {
  ApiEndpoint endpoint;
  std::string_view url;
};
constexpr auto kAddresses = std::to_array<Address>({
    {ApiEndpoint::kChat, "/v1/chat/completions"},
    {ApiEndpoint::kCompletions, "/v1/completions"},
    {ApiEndpoint::kResponses, "/v1/responses"},
    {ApiEndpoint::kMessages, "/v1/messages"},
});

}  // namespace

std::string_view Url(ApiEndpoint endpoint) {
  return std::find_if(kAddresses.begin(), kAddresses.end(),
                      [&](const Address& address) { return address.endpoint == endpoint; })
      ->url;
}

std::optional<ApiEndpoint> FindEndpoint(std::string_view url) {
  for (const Address& address : kAddresses)
    if (url == address.url) return address.endpoint;
  return std::nullopt;
}

Result<ApiModel> ApiModel::Create(const std::string& name, const ModelFiles& files) {
  LATTE_ASSIGN_OR_RETURN(const GenerationDefaults defaults, LoadGenerationDefaults(files.dir));
  ApiModel out{name, files.tokenizer, ChatPromptBuilder::Create(files.tokenizer, files.config),
               defaults};
  out.fingerprint = fmt::format("fp_{:010x}", files.config.text_hash & 0xFFFFFFFFFF);
  return out;
}

void ApiModel::UseApiDefaults() {
  if (!defaults.recommended) defaults.temperature = kApiTemperature;
}

Status ApiModel::UseChatTemplate(const std::string& text, const ModelConfig& config) {
  LATTE_ASSIGN_OR_RETURN(ChatPromptBuilder built,
                         ChatPromptBuilder::Create(tokenizer, config, text));
  chat = std::move(built);
  return {};
}

}  // namespace latte

#include "src/io/chat_prompt.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace latte {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

ChatMessage Message(std::string role, std::string content) {
  ChatMessage message;
  message.role = std::move(role);
  message.content = std::move(content);
  return message;
}

// A conversation that shows how a format goes on after an answer.
constexpr std::string_view kAnswer = "espresso";
std::vector<ChatMessage> SampleChat() {
  return {Message("user", "?"), Message("assistant", std::string(kAnswer)), Message("user", "?")};
}

ChatModel ModelOf(const Tokenizer& tokenizer, const ModelConfig& config) {
  const auto text_of = [&](std::optional<int32_t> id) {
    return id ? std::string(tokenizer.TokenBytes(*id)) : std::string();
  };
  ChatModel model;
  model.chat_template = tokenizer.chat_template();
  model.model_type = config.model_type;
  model.bos_token = text_of(tokenizer.bos_id());
  model.eos_token = text_of(tokenizer.eos_id());
  model.has_token = [tokenizer](std::string_view text) {
    return tokenizer.TokenId(text).has_value();
  };
  return model;
}

Result<std::vector<int32_t>> Encode(const Tokenizer& tokenizer, std::span<const ChatPiece> pieces) {
  std::vector<TextPiece> views;
  views.reserve(pieces.size());
  for (const ChatPiece& piece : pieces) views.push_back({piece.text, piece.trusted});
  return tokenizer.EncodePieces(views);
}

// Whether `id` is a mark: a token that trusted text can spell and other text cannot.
bool IsMark(const Tokenizer& tokenizer, int32_t id) {
  const std::string_view text = tokenizer.TokenBytes(id);
  const TextPiece trusted{text, true};
  const TextPiece untrusted{text, false};
  const std::vector<int32_t> only = {id};
  return tokenizer.EncodePieces({&trusted, 1}) == only &&
         tokenizer.EncodePieces({&untrusted, 1}) != only;
}

}  // namespace

Result<ChatPromptBuilder> ChatPromptBuilder::Create(const Tokenizer& tokenizer,
                                                    const ModelConfig& config) {
  LATTE_ASSIGN_OR_RETURN(ChatRenderer renderer, ChatRenderer::Create(ModelOf(tokenizer, config)));
  ChatPromptBuilder out(tokenizer, std::move(renderer));
  out.stop_tokens_ = config.eos;
  for (const std::optional<int32_t> id : {tokenizer.eos_id(), out.TokenAfterAnswers()})
    if (id &&
        std::find(out.stop_tokens_.begin(), out.stop_tokens_.end(), *id) == out.stop_tokens_.end())
      out.stop_tokens_.push_back(*id);
  out.has_thinking_switch_ = out.FindThinkingSwitch();
  return out;
}

Result<ChatPrompt> ChatPromptBuilder::Build(std::span<const ChatMessage> messages,
                                            const ChatOptions& options) const {
  LATTE_ASSIGN_OR_RETURN(const std::vector<ChatPiece> pieces, renderer_.Render(messages, options));
  ChatPrompt out;
  LATTE_ASSIGN_OR_RETURN(out.ids, Encode(tokenizer_, pieces));
  if (!pieces.empty() && pieces.back().trusted) {
    const std::string_view text = pieces.back().text;
    const size_t last = text.find_last_not_of(kSpaces);
    out.in_thought =
        last != std::string_view::npos && text.substr(0, last + 1).ends_with("<think>");
  }
  return out;
}

// A sample conversation shows it: the mark that stands right after an answer, white space aside. A
// format that refuses the sample, or ends answers in another way, gives none.
std::optional<int32_t> ChatPromptBuilder::TokenAfterAnswers() const {
  constexpr std::string_view kAnswer = "espresso";
  const std::vector<ChatMessage> sample = {
      Message("user", "?"), Message("assistant", std::string(kAnswer)), Message("user", "?")};
  const auto pieces = renderer_.Render(sample);
  if (!pieces) return std::nullopt;
  const auto answer = std::find_if(pieces->begin(), pieces->end(), [&](const ChatPiece& piece) {
    return !piece.trusted && piece.text.ends_with(kAnswer);
  });
  if (answer == pieces->end() || answer + 1 == pieces->end()) return std::nullopt;
  const std::string_view after = (answer + 1)->text;
  const size_t begin = after.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return std::nullopt;
  const TextPiece rest{after.substr(begin), true};
  const auto ids = tokenizer_.EncodePieces({&rest, 1});
  if (!ids || ids->empty() || !IsMark(tokenizer_, ids->front())) return std::nullopt;
  return ids->front();
}

// Some formats show it where an answer begins (DeepSeek-V3.1), some only in the history (Kimi-K2).
bool ChatPromptBuilder::FindThinkingSwitch() const {
  const std::vector<ChatMessage> history = SampleChat();
  for (const size_t count : {size_t{1}, history.size()}) {
    const std::span<const ChatMessage> sample(history.data(), count);
    ChatOptions options;
    const auto without = renderer_.Render(sample, options);
    options.thinking = true;
    const auto with = renderer_.Render(sample, options);
    if (with && without && JoinPieces(*with) != JoinPieces(*without)) return true;
  }
  return false;
}

}  // namespace latte

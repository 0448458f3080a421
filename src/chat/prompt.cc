#include "src/chat/prompt.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/strings.h"
#include "src/chat/encoders.h"

namespace latte {
namespace {

// A conversation that shows how a format continues after an answer.
constexpr std::string_view kAnswer = "espresso";
std::vector<ChatMessage> SampleChat() {
  return {{"user", "?"}, {"assistant", std::string(kAnswer)}, {"user", "?"}};
}

bool HasRole(std::span<const ChatMessage> messages, std::string_view role) {
  return std::any_of(messages.begin(), messages.end(),
                     [&](const ChatMessage& message) { return message.role == role; });
}

bool EndsInThought(std::span<const TextPiece> pieces) {
  if (pieces.empty() || !pieces.back().from_template) return false;
  const std::string_view text = pieces.back().text;
  const size_t last = text.find_last_not_of(kSpaces);
  return last != std::string_view::npos && text.substr(0, last + 1).ends_with("<think>");
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

Result<std::vector<int32_t>> Encode(const Tokenizer& tokenizer, std::span<const TextPiece> pieces) {
  return tokenizer.EncodePieces(pieces);
}

// Whether `id` is a mark: a token that text of the template can spell and text of a user cannot.
bool IsMark(const Tokenizer& tokenizer, int32_t id) {
  const std::string text(tokenizer.TokenBytes(id));
  const TextPiece of_template{text, true};
  const TextPiece of_user{text, false};
  const std::vector<int32_t> only = {id};
  return tokenizer.EncodePieces({&of_template, 1}) == only &&
         tokenizer.EncodePieces({&of_user, 1}) != only;
}

}  // namespace

Result<ChatPromptBuilder> ChatPromptBuilder::Create(const Tokenizer& tokenizer,
                                                    const ModelConfig& config) {
  LATTE_RETURN_IF_ERROR(tokenizer.CheckChatTemplate());
  return CreateFor(tokenizer, config, ModelOf(tokenizer, config));
}

Result<ChatPromptBuilder> ChatPromptBuilder::Create(const Tokenizer& tokenizer,
                                                    const ModelConfig& config,
                                                    const std::string& chat_template) {
  ChatModel model = ModelOf(tokenizer, config);
  model.chat_template = chat_template;
  return CreateFor(tokenizer, config, model);
}

Result<ChatPromptBuilder> ChatPromptBuilder::CreateFor(const Tokenizer& tokenizer,
                                                       const ModelConfig& config,
                                                       const ChatModel& model) {
  LATTE_ASSIGN_OR_RETURN(ChatRenderer renderer, ChatRenderer::Create(model));
  ChatPromptBuilder out(tokenizer, std::move(renderer));
  out.stop_tokens_ = config.eos;
  for (const std::optional<int32_t> id : {tokenizer.eos_id(), out.TokenAfterAnswers()})
    if (id &&
        std::find(out.stop_tokens_.begin(), out.stop_tokens_.end(), *id) == out.stop_tokens_.end())
      out.stop_tokens_.push_back(*id);
  out.has_thinking_switch_ = out.FindThinkingSwitch();
  const std::vector<ChatMessage> question = {{"user", "?"}};
  if (const auto opening = out.renderer_.Render(question)) {
    out.thinks_by_itself_ = EndsInThought(*opening);
    out.shows_messages_ = FindUnshown(out.renderer_, question, {}, *opening).empty();
  }
  out.developer_is_system_ = !out.ShowsDevelopers();
  out.opens_before_system_ = out.OpensBeforeSystem();
  out.tool_format_ = FindToolFormat(out.format(), out.chat_template());
  out.shows_tools_ = out.ShowsTools();
  out.hides_calls_ = out.HidesCalls();
  return out;
}

// Some formats lack the role "developer", the newer name of system messages. DeepSeek-V3.2 uses it
// for a purpose of its own, and leaves it out when thinking.
bool ChatPromptBuilder::ShowsDevelopers() const {
  const std::vector<ChatMessage> sample = {{"developer", std::string(kAnswer)}, {"user", "?"}};
  for (const bool thinking : {false, true}) {
    ChatOptions options;
    options.thinking = thinking;
    const auto pieces = renderer_.Render(sample, options);
    if (!pieces || !FindUnshown(renderer_, sample, options, *pieces).empty()) return false;
  }
  return true;
}

bool ChatPromptBuilder::ShowsTools() const {
  constexpr std::string_view kTool = "latte_sample_tool";
  ChatOptions options;
  options.tools = fmt::format(
      R"([{{"type": "function", "function": {{"name": "{}", "description": "?", "parameters": )"
      R"({{"type": "object", "properties": {{}}}}}}}}])",
      kTool);
  const auto prompt = renderer_.Render(std::vector{ChatMessage{"user", "?"}}, options);
  return prompt && JoinPieces(*prompt).find(kTool) != std::string::npos;
}

bool ChatPromptBuilder::HidesCalls() const {
  if (!tool_format_) return false;
  // Each special token of a call stands alone in one of the pieces.
  const auto hidden = [&](std::string_view mark) {
    const TextPiece piece{std::string(mark), true};
    const auto ids = tokenizer_.EncodePieces({&piece, 1});
    return ids && std::any_of(ids->begin(), ids->end(),
                              [&](int32_t id) { return tokenizer_.IsSpecial(id); });
  };
  const std::span<const std::string_view> openings = CallOpenings(*tool_format_);
  return std::any_of(openings.begin(), openings.end(), hidden);
}

// The model can do without names and without its own earlier answers, but not without instructions
// and questions.
bool ChatPromptBuilder::CanDoWithout(const Unshown& left, std::string_view role) const {
  if (!shows_messages_ || left.what == MessagePart::kName) return true;
  return left.what == MessagePart::kText && role == "assistant";
}

Result<std::vector<std::string>> ChatPromptBuilder::NotesOn(
    std::span<const ChatMessage> messages, const ChatOptions& options,
    std::span<const TextPiece> prompt) const {
  std::set<std::string> notes;
  for (const Unshown& left : FindUnshown(renderer_, messages, options, prompt)) {
    const std::string& role = messages[left.message].role;
    // The ids and the order identify the results of tools.
    if (left.what == MessagePart::kName && role == "tool") continue;
    const std::string_view what = left.what == MessagePart::kName   ? "the name"
                                  : left.what == MessagePart::kText ? "the text"
                                                                    : "the tool calls";
    if (CanDoWithout(left, role))
      notes.insert(fmt::format("the chat format {} leaves out {} of a message of role '{}'",
                               ChatFormatName(format()), what, role));
    else
      return BadMessage(
          format(), left.message,
          fmt::format("this format leaves out {} of a message of role '{}' here, so the model "
                      "would not see it; {}",
                      what, role,
                      left.what == MessagePart::kText
                          ? "say it in a message of another role, or join it to one that is shown"
                          : "say it in the message's text"));
  }
  return std::vector<std::string>(notes.begin(), notes.end());
}

// Some templates open the answer together with the user's text, and write a system message that
// follows as the beginning of that answer.
bool ChatPromptBuilder::OpensBeforeSystem() const {
  const std::vector<ChatMessage> chat = {{"user", "?"}, {"system", std::string(kAnswer)}};
  const auto question = renderer_.Render(std::span(chat).first(1));
  const auto later = renderer_.Render(chat);
  if (!question || !later || question->empty() || later->empty()) return false;
  const TextPiece& opening = question->back();
  return opening.from_template && opening.text.find_first_not_of(kSpaces) != std::string::npos &&
         !later->back().from_template && later->back().text.ends_with(kAnswer);
}

Result<ArrangedChat> ChatPromptBuilder::Arrange(std::span<const ChatMessage> messages) const {
  LATTE_ASSIGN_OR_RETURN(ArrangedChat out, ArrangeToolResults(format(), messages));
  if (tool_format_ == ToolFormat::kKimiK2) NameCallsAsKimi(&out.messages);
  if (developer_is_system_ && opens_before_system_)
    for (ChatMessage& message : out.messages)
      if (message.role == "developer") message.role = "system";
  if (opens_before_system_) JoinSystemToUsers(&out);
  return out;
}

// With a format that opens an answer only after a question, the model would write on behind the end
// of its last answer. A format that ends both in the same way opens no answer anywhere.
Status ChatPromptBuilder::CheckEnd(std::span<const ChatMessage> messages,
                                   const ChatOptions& options,
                                   std::span<const TextPiece> prompt) const {
  const auto last = std::find_if(messages.rbegin(), messages.rend(), [](const ChatMessage& m) {
    return m.role != "system" && m.role != "developer";
  });
  if (!options.add_generation_prompt || last == messages.rend() || last->role != "assistant")
    return {};
  const bool closed = !prompt.empty() && prompt.back().from_template &&
                      prompt.back().text.find_first_not_of(kSpaces) != std::string::npos;
  if (!closed || last->prefix) return {};
  ChatOptions without = options;
  without.add_generation_prompt = false;
  const auto same = renderer_.Render(messages, without);
  if (!same || JoinPieces(*same) != JoinPieces(prompt)) return {};
  const auto question = renderer_.Render(std::vector{ChatMessage{"user", "?"}}, options);
  if (!question || question->empty()) return {};
  const TextPiece& opening = question->back();
  if (opening.from_template && opening.text == prompt.back().text) return {};
  return Unsupported(fmt::format(
      "chat format {}: message {}: this format begins no answer after an answer; let the last "
      "message be the user's or the result of a tool",
      ChatFormatName(format()), messages.rend() - last - 1));
}

Result<ChatPrompt> ChatPromptBuilder::Build(std::span<const ChatMessage> messages,
                                            const ChatOptions& options) const {
  std::vector<ChatMessage> shown = renderer_.WithCallsShown(messages);
  if (!developer_is_system_ || !HasRole(messages, "developer")) return BuildFrom(shown, options);
  for (ChatMessage& message : shown)
    if (message.role == "developer") message.role = "system";
  return BuildFrom(shown, options).map_error([&](Error error) {
    error.message += "; this format has no role 'developer', which is taken for system";
    return error;
  });
}

Result<ChatPrompt> ChatPromptBuilder::BuildFrom(std::span<const ChatMessage> messages,
                                                const ChatOptions& options) const {
  LATTE_ASSIGN_OR_RETURN(const std::vector<TextPiece> pieces, renderer_.Render(messages, options));
  if (options.check_size) {
    size_t bytes = 0;
    for (const TextPiece& piece : pieces) bytes += piece.text.size();
    LATTE_RETURN_IF_ERROR(options.check_size(bytes));
  }
  LATTE_RETURN_IF_ERROR(CheckEnd(messages, options, pieces));
  ChatPrompt out;
  LATTE_ASSIGN_OR_RETURN(out.notes, NotesOn(messages, options, pieces));
  LATTE_ASSIGN_OR_RETURN(out.ids, Encode(tokenizer_, pieces));
  out.in_thought = EndsInThought(pieces);
  return out;
}

std::vector<std::string> ChatPromptBuilder::UnusedFeatures() const {
  constexpr size_t kListed = 8;
  const std::vector<std::string>& unused = tokenizer_.unused_chat_templates();
  if (unused.empty()) return {};
  const std::span<const std::string> listed(unused.data(), std::min(unused.size(), kListed));
  return {fmt::format("chat templates that are not used: {}{}", fmt::join(listed, ", "),
                      unused.size() > kListed ? ", …" : "")};
}

// Renders a sample conversation and finds the mark directly after an answer, ignoring white space.
// Returns none if the format refuses the sample or ends answers in another way.
std::optional<int32_t> ChatPromptBuilder::TokenAfterAnswers() const {
  const auto pieces = renderer_.Render(SampleChat());
  if (!pieces) return std::nullopt;
  const auto answer = std::find_if(pieces->begin(), pieces->end(), [&](const TextPiece& piece) {
    return !piece.from_template && piece.text.ends_with(kAnswer);
  });
  if (answer == pieces->end() || answer + 1 == pieces->end()) return std::nullopt;
  const std::string_view after = (answer + 1)->text;
  const size_t begin = after.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return std::nullopt;
  const TextPiece rest{std::string(after.substr(begin)), true};
  const auto ids = tokenizer_.EncodePieces({&rest, 1});
  if (!ids || ids->empty() || !IsMark(tokenizer_, ids->front())) return std::nullopt;
  return ids->front();
}

// Some formats show the switch where an answer begins (DeepSeek-V3.1), some only in the history
// (Kimi-K2).
bool ChatPromptBuilder::FindThinkingSwitch() const {
  const std::vector<ChatMessage> history = SampleChat();
  for (const size_t count : {size_t{1}, history.size()}) {
    const std::span<const ChatMessage> sample(history.data(), count);
    ChatOptions options;
    options.thinking = false;
    const auto without = renderer_.Render(sample, options);
    options.thinking = true;
    const auto with = renderer_.Render(sample, options);
    if (with && without && JoinPieces(*with) != JoinPieces(*without)) return true;
  }
  return false;
}

}  // namespace latte

#include "src/jobs/chat_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "src/engine/output/answer_text.h"
#include "src/engine/run/generate.h"

namespace latte {
namespace {

ChatMessage Message(std::string role, std::string content) {
  ChatMessage message;
  message.role = std::move(role);
  message.content = std::move(content);
  return message;
}

size_t CommonPrefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t n = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<int64_t>(n), b.begin()).first - a.begin());
}

ChatEnd EndOf(const GenerateResult& result, bool cancelled, int64_t max_new_tokens) {
  if (cancelled) return ChatEnd::kCancelled;
  if (result.reason == FinishReason::kStop) return ChatEnd::kStop;
  const bool all = static_cast<int64_t>(result.tokens.size()) >= max_new_tokens;
  return all ? ChatEnd::kLength : ChatEnd::kContextFull;
}

}  // namespace

ChatSession::ChatSession(ChatPromptBuilder builder, Session* session, ChatSettings settings)
    : builder_(std::move(builder)), session_(session), settings_(std::move(settings)) {
  Reset();
}

Result<ChatSession> ChatSession::Create(ChatPromptBuilder builder, Session* session,
                                        ChatSettings settings) {
  LATTE_RETURN_IF_ERROR(settings.sampling.Validate());
  if (settings.max_new_tokens < 1)
    return InvalidArgument(
        fmt::format("-n: expected 1 or more, found {}", settings.max_new_tokens));
  if (settings.thinking && !builder.has_thinking_switch())
    return InvalidArgument(fmt::format(
        "thinking: this model's chat format ({}) has no switch for it; leave out --thinking and "
        "--no-thinking",
        ChatFormatName(builder.format())));
  ChatSession out(std::move(builder), session, std::move(settings));
  // A system text that the format does not take is better refused now than after the first
  // question.
  out.messages_.push_back(Message("user", "?"));
  LATTE_RETURN_IF_ERROR(out.BuildPrompt());
  out.Reset();
  return out;
}

void ChatSession::Reset() {
  messages_.clear();
  if (settings_.system) messages_.push_back(Message("system", *settings_.system));
}

bool ChatSession::Undo() {
  if (messages_.size() < 2 || messages_.back().role != "assistant") return false;
  messages_.resize(messages_.size() - 2);
  return true;
}

Result<ChatPrompt> ChatSession::BuildPrompt() const {
  ChatOptions options;
  options.thinking = settings_.thinking;
  return builder_.Build(messages_, options);
}

Result<ChatAnswer> ChatSession::Ask(std::string text, const Callback& on_step) {
  messages_.push_back(Message("user", std::move(text)));
  Result<ChatAnswer> answer = BuildPrompt().and_then([&](const ChatPrompt& prompt) {
    return Answer(prompt, on_step).map([&](ChatAnswer done) {
      const bool began = !done.tokens.empty() || done.end != ChatEnd::kCancelled;
      if (began) messages_.push_back(AnswerMessage(done.text, prompt.in_thought));
      return done;
    });
  });
  if (messages_.back().role == "user") messages_.pop_back();
  return answer;
}

Result<bool> ChatSession::FeedPrompt(std::span<const int32_t>* ids, const Callback& on_step) {
  const int64_t chunk_tokens = session_->options().chunk_tokens;
  const size_t chunk = chunk_tokens == 0 ? ids->size() : static_cast<size_t>(chunk_tokens);
  while (ids->size() > chunk) {
    LATTE_RETURN_IF_ERROR(session_->Prompt(ids->first(chunk)));
    *ids = ids->subspan(chunk);
    if (on_step && !on_step("")) return false;
  }
  return true;
}

Result<ChatAnswer> ChatSession::Answer(const ChatPrompt& prompt, const Callback& on_step) {
  const auto total = static_cast<int64_t>(prompt.ids.size());
  const int64_t room = session_->options().max_tokens;
  if (total >= room)
    return Fail(Code::kExhausted,
                fmt::format("with this message the conversation has {} tokens, but the context "
                            "ends at {}; forget the history or send a shorter message",
                            total, room));
  if (total == 0) return InvalidArgument("the chat format made an empty prompt");
  ChatAnswer out;
  out.prompt_tokens = total;
  out.notes = prompt.notes;
  const auto common = static_cast<int64_t>(CommonPrefix(session_->tokens(), prompt.ids));
  // At least the last token is computed again: its logits are needed.
  out.reused_tokens = std::min({common, session_->reusable_length(), total - 1});
  session_->Truncate(out.reused_tokens);
  session_->Admit(total - out.reused_tokens);
  std::span<const int32_t> rest =
      std::span(prompt.ids).subspan(static_cast<size_t>(out.reused_tokens));
  const auto start = std::chrono::steady_clock::now();
  LATTE_ASSIGN_OR_RETURN(const bool fed, FeedPrompt(&rest, on_step));
  const std::chrono::duration<double> feeding = std::chrono::steady_clock::now() - start;
  if (!fed) {
    out.end = ChatEnd::kCancelled;
    return out;
  }
  AnswerText written(builder_.tokenizer(), {}, settings_.keep_special);
  bool cancelled = false;
  const auto emit = [&](const std::string& text) {
    out.text += text;
    if (on_step && !on_step(text)) cancelled = true;
    return !cancelled;
  };
  GenerateOptions options;
  options.sampling = settings_.sampling;
  options.max_new_tokens = settings_.max_new_tokens;
  options.stop_tokens = builder_.stop_tokens();
  options.on_token = [&](int32_t token) { return emit(written.Push(token).text); };
  LATTE_ASSIGN_OR_RETURN(GenerateResult result, Generate(*session_, rest, options));
  out.end = EndOf(result, cancelled, settings_.max_new_tokens);
  emit(written.Flush());
  out.tokens = std::move(result.tokens);
  out.prompt_seconds = feeding.count() + result.prompt_seconds;
  out.generate_seconds = result.generate_seconds;
  return out;
}

}  // namespace latte

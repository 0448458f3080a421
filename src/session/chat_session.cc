#include "src/session/chat_session.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace latte {
namespace {

ChatEnd EndOf(const Completion& answer, bool cancelled, int64_t max_new_tokens) {
  if (cancelled) return ChatEnd::kCancelled;
  if (answer.reason == FinishReason::kStop) return ChatEnd::kStop;
  const bool all = static_cast<int64_t>(answer.tokens.size()) >= max_new_tokens;
  return all ? ChatEnd::kLength : ChatEnd::kContextFull;
}

}  // namespace

ChatSession::ChatSession(ChatPromptBuilder builder, Engine* engine, ChatSettings settings)
    : builder_(std::move(builder)), engine_(engine), settings_(std::move(settings)) {
  Reset();
}

Result<ChatSession> ChatSession::Create(ChatPromptBuilder builder, Engine* engine,
                                        ChatSettings settings) {
  LATTE_RETURN_IF_ERROR(CheckParams(settings.params));
  if (settings.thinking && !builder.has_thinking_switch())
    return InvalidArgument(fmt::format(
        "thinking: this model's chat format ({}) has no switch for it; leave out --thinking and "
        "--no-thinking",
        ChatFormatName(builder.format())));
  ChatSession out(std::move(builder), engine, std::move(settings));
  LATTE_RETURN_IF_ERROR(out.CheckFormat(out.messages_));
  return out;
}

// Refuses what the format does not accept now, not after the next question.
Status ChatSession::CheckFormat(const std::vector<ChatMessage>& messages) const {
  std::vector<ChatMessage> asked = messages;
  asked.push_back(ChatMessage{"user", "?"});
  return builder_.Build(asked, {.thinking = settings_.thinking}).map([](const ChatPrompt&) {});
}

Status ChatSession::SetMessages(std::vector<ChatMessage> messages) {
  LATTE_RETURN_IF_ERROR(CheckFormat(messages));
  messages_ = std::move(messages);
  settings_.system = SystemText(messages_);
  return {};
}

Status ChatSession::SetSystem(std::optional<std::string> text) {
  return SetMessages(WithSystem(messages_, std::move(text)));
}

Status ChatSession::SetParams(ChatParams params) {
  LATTE_RETURN_IF_ERROR(CheckParams(params));
  settings_.params = std::move(params);
  return {};
}

void ChatSession::Reset() {
  messages_.clear();
  if (settings_.system) messages_.push_back(ChatMessage{"system", *settings_.system});
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
  messages_.push_back(ChatMessage{"user", std::move(text)});
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

Request ChatSession::RequestFor(const ChatPrompt& prompt) const {
  Request request;
  request.tokens = prompt.ids;
  request.sampling = settings_.params.sampling;
  request.keep_special = settings_.keep_special;
  request.stop = settings_.params.stop;
  request.reasoning = prompt.in_thought ? "begun" : "possible";
  // The chat format defines the tokens that end an answer.
  if (!request.stop.ignore_eos)
    request.stop.tokens.assign(builder_.stop_tokens().begin(), builder_.stop_tokens().end());
  request.stop.ignore_eos = true;
  return request;
}

PromptProgress ChatSession::prompt_progress() const {
  const EngineStats stats = engine_->Stats();
  return {.done = stats.computed_tokens - computed_before_,
          .total = prompt_tokens_ - (stats.cached_tokens - cached_before_)};
}

Result<ChatAnswer> ChatSession::Answer(const ChatPrompt& prompt, const Callback& on_step) {
  const auto total = static_cast<int64_t>(prompt.ids.size());
  if (total >= settings_.context)
    return Fail(Code::kExhausted,
                fmt::format("with this message the conversation has {} tokens, but the context "
                            "ends at {}; forget the history or send a shorter message",
                            total, settings_.context));
  if (total == 0) return InvalidArgument("the chat format made an empty prompt");
  prompt_tokens_ = total;
  computed_before_ = engine_->Stats().computed_tokens;
  cached_before_ = engine_->Stats().cached_tokens;
  bool cancelled = false;
  AnswerSplitter splitter(prompt.in_thought);
  const auto step = [&](const TokenEvent* event) {
    const bool goes_on =
        !on_step || on_step(event != nullptr ? splitter.Push(event->text) : AnswerPiece());
    // An answer that the model ended, or that was already cancelled, is not cut here.
    const bool cuts = event == nullptr || event->token.has_value();
    if (!goes_on && cuts) cancelled = true;
    return !cancelled;
  };
  Result<Completion> made = Complete(*engine_, RequestFor(prompt), step);
  if (const AnswerPiece rest = splitter.Finish(); on_step && !rest.empty()) on_step(rest);
  if (!made) return tl::unexpected(std::move(made).error());
  ChatAnswer out;
  out.prompt_tokens = total;
  out.notes = prompt.notes;
  out.end = EndOf(*made, cancelled, settings_.params.stop.max_tokens);
  out.text = std::move(made->text);
  out.tokens = std::move(made->tokens);
  out.generated_tokens = std::ssize(out.tokens);
  out.reused_tokens = made->cached_tokens;
  const PromptProgress progress = prompt_progress();
  out.computed_tokens = std::min(progress.done, progress.total);
  out.prompt_seconds = made->prompt_seconds;
  out.generate_seconds = made->generate_seconds;
  return out;
}

}  // namespace latte

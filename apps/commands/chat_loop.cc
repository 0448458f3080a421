#include "apps/commands/chat_loop.h"

#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "apps/flags/command.h"
#include "apps/terminal/line_reader.h"

namespace latte {
namespace {

void Note(std::string_view text) { std::fputs(fmt::format("{}\n", text).c_str(), stderr); }

}  // namespace

ChatLoop::ChatLoop(Conversation* chat, const Interrupts& interrupts, ChatLoopOptions options)
    : chat_(chat),
      interrupts_(interrupts),
      options_(std::move(options)),
      terminal_(interrupts.fd() >= 0) {}

Status ChatLoop::Run() {
  if (terminal_)
    Note(fmt::format("{}: type a message; /help lists commands, Ctrl-D leaves", options_.model));
  LineReader reader(STDIN_FILENO, interrupts_.fd());
  std::string line;
  while (true) {
    interrupts_.Take();  // discards one that arrived after the end of the answer
    if (terminal_) std::fputs("> ", stderr);
    LATTE_ASSIGN_OR_RETURN(const LineReader::Event event, reader.Next(&line));
    if (event == LineReader::Event::kInterrupted) {
      Note("\n(to leave, press Ctrl-D or type /exit)");
      continue;
    }
    if (event == LineReader::Event::kEnd) break;
    if (line == "/exit") return {};
    const Status handled = Handle(line);
    if (handled) continue;
    if (!terminal_ || output_lost_) return handled;
    Note("latte: " + ToString(handled.error()));
  }
  if (terminal_) Note("");
  return {};
}

Status ChatLoop::Handle(const std::string& line) {
  if (line.find_first_not_of(" \t") == std::string::npos) return {};
  if (line.starts_with("//")) return Answer(line.substr(1));
  if (!line.starts_with('/')) return Answer(line);
  if (line == "/help") {
    std::fputs(kChatHelp, stderr);
  } else if (line == "/reset") {
    chat_->Reset();
  } else if (line == "/undo") {
    if (!chat_->Undo()) return InvalidArgument("/undo: there is no answer to remove");
  } else {
    return InvalidArgument(fmt::format(
        "unknown command '{}': expected /reset, /undo, /exit or /help; a message that begins "
        "with / is written with //",
        line.substr(0, 32)));
  }
  return {};
}

Status ChatLoop::Answer(std::string message) {
  Status printed;
  bool in_line = false;
  const auto print = [&](std::string_view text) {
    if (!text.empty()) {
      printed = Print(text);
      in_line = !text.ends_with('\n');
    }
    return printed && !interrupts_.Take();
  };
  Result<ChatAnswer> answer = chat_->Ask(std::move(message), print);
  output_lost_ = !printed;
  LATTE_RETURN_IF_ERROR(printed);
  if (!answer) {
    if (in_line) LATTE_RETURN_IF_ERROR(Print("\n"));
    Error error = std::move(answer).error();
    if (error.code == Code::kExhausted) error.message += " (/reset or /undo forgets)";
    return tl::unexpected(std::move(error));
  }
  if (!answer->text.ends_with('\n')) LATTE_RETURN_IF_ERROR(Print("\n"));
  for (const std::string& note : answer->notes)
    if (noted_.insert(note).second) Note(fmt::format("[{}]", note));
  NoteEnd(*answer);
  if (options_.stats) NoteStats(*answer);
  return {};
}

void ChatLoop::NoteEnd(const ChatAnswer& answer) const {
  switch (answer.end) {
    case ChatEnd::kStop:
      return;
    case ChatEnd::kLength:
      return Note(fmt::format("[cut after {} tokens; -n sets how many]", answer.generated_tokens));
    case ChatEnd::kContextFull:
      return Note(
          fmt::format("[cut: the context of {} tokens is full; /reset forgets the conversation]",
                      options_.context));
    case ChatEnd::kCancelled:
      return Note(answer.generated_tokens == 0 ? "[stopped before the answer began; not kept]"
                                               : "[stopped; the text so far is kept]");
  }
}

void ChatLoop::NoteStats(const ChatAnswer& answer) const {
  const int64_t computed = answer.prompt_tokens - answer.reused_tokens;
  const std::string context =
      options_.context == 0
          ? ""
          : fmt::format("; context {} of {}", answer.prompt_tokens + answer.generated_tokens,
                        options_.context);
  Note(
      fmt::format("[prompt {} tokens, {} of them cached, {:.1f} tokens/s; generated {}, {:.1f} "
                  "tokens/s{}]",
                  answer.prompt_tokens, answer.reused_tokens,
                  PerSecond(computed, answer.prompt_seconds), answer.generated_tokens,
                  PerSecond(answer.generated_tokens - 1, answer.generate_seconds), context));
}

}  // namespace latte

#include "apps/chat/chat_loop.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "apps/chat/message_reader.h"
#include "apps/chat/parameters.h"
#include "apps/chat/transcript.h"
#include "apps/flags/command.h"
#include "apps/terminal/answer/answer_printer.h"
#include "apps/terminal/answer/screen_text.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/screen.h"
#include "src/base/fields/suggest.h"
#include "src/base/strings.h"
#include "src/text/unicode/visible.h"

namespace latte {
namespace {

struct SlashCommand {
  std::string_view name;
  std::string_view argument;
  std::string_view help;
  Status (ChatLoop::*run)(const std::string& argument);
};

constexpr std::array kCommands = {
    SlashCommand{"/help", "", "this list", &ChatLoop::Help},
    SlashCommand{"/reset", "", "clear the conversation", &ChatLoop::Reset},
    SlashCommand{"/undo", "", "remove the last question and its answer", &ChatLoop::Undo},
    SlashCommand{"/regenerate", "", "answer the last question again, with another seed",
                 &ChatLoop::Regenerate},
    SlashCommand{"/system", "[TEXT]", "show or replace the system message; /system \"\" removes it",
                 &ChatLoop::System},
    SlashCommand{"/set", "[NAME VALUE]", "show all parameters, or change one: /set temperature 0.6",
                 &ChatLoop::SetParameter},
    SlashCommand{"/stats", "", "print speeds after every answer, or no longer", &ChatLoop::Stats},
    SlashCommand{"/save", "FILE", "write the conversation to a file (JSON)", &ChatLoop::Save},
    SlashCommand{"/load", "FILE", "continue the conversation of such a file", &ChatLoop::Load},
    SlashCommand{"/quit", "", "leave (so do /exit and Ctrl-D)", &ChatLoop::Exit},
    SlashCommand{"/exit", "", "", &ChatLoop::Exit},
};

// Words stay whole in a terminal. The text gets a newline if it does not end with one.
void PrintNote(std::string_view text) {
  std::string lines = Wrapped(VisibleLines(text), ColumnsOf(STDERR_FILENO));
  if (!lines.ends_with('\n')) lines += '\n';
  Tell(lines);
}

Status Unexpected(std::string_view command, const std::string& argument) {
  if (argument.empty()) return {};
  return InvalidArgument(
      fmt::format("{}: expected nothing after it, found '{}'", command, argument.substr(0, 32)));
}

Status NeedsFile(std::string_view command, const std::string& argument) {
  if (!argument.empty()) return {};
  return InvalidArgument(fmt::format("{}: expected the name of a file after it", command));
}

// No shell has replaced the ~ of a path that the user typed here.
std::string UserPath(const std::string& path) {
  const char* home = std::getenv("HOME");
  return home != nullptr && path.starts_with("~/") ? home + path.substr(1) : path;
}

size_t Questions(const Conversation& chat) {
  size_t out = 0;
  for (const ChatMessage& message : chat.Messages()) out += message.role == "user" ? 1 : 0;
  return out;
}

// Whether params() holds the value in effect of a field.
bool Knows(const Conversation& chat, std::string_view field) {
  return !chat.leaves_rest_to_server() || chat.params().chosen.contains(field);
}

bool IsSameText(const ChatMessage& a, const ChatMessage& b) {
  return a.content == b.content && a.reasoning == b.reasoning;
}

std::string Count(size_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

}  // namespace

std::string ChatHelp() {
  std::string out;
  for (const SlashCommand& command : kCommands)
    if (!command.help.empty())
      out += fmt::format("{:<20} {}\n", fmt::format("{} {}", command.name, command.argument),
                         command.help);
  out +=
      "Several lines between two \"\"\" are one message, and so is what is pasted.\n"
      "Ctrl-C stops an answer. To send a message that begins with /, type //.\n";
  return out;
}

ChatLoop::ChatLoop(Conversation* chat, const Interrupts& interrupts, ChatLoopOptions options)
    : chat_(chat), interrupts_(interrupts), options_(std::move(options)) {}

Status ChatLoop::Run(LineSource* lines) {
  if (options_.interactive)
    PrintNote(fmt::format("{}: type a message; /help lists commands, Ctrl-D leaves",
                          VisibleLine(options_.model)));
  if (options_.interactive && !options_.hint.empty()) PrintNote(options_.hint);
  takes_commands_ = true;
  MessageReader reader(lines);
  while (!exits_) {
    interrupts_.Take();  // discards one that arrived after the end of the answer
    LATTE_ASSIGN_OR_RETURN(MessageReader::Message message, reader.Next());
    if (message.event == LineEvent::kInterrupted) {
      PrintNote("\n(to leave, press Ctrl-D or type /quit)");
      continue;
    }
    if (message.event == LineEvent::kEnd) {
      if (options_.interactive) PrintNote("");
      return {};
    }
    if (Trimmed(message.text).empty()) continue;
    const bool obeys = !message.quoted && message.text.starts_with('/');
    const Status handled = obeys ? Obey(message.text) : Answer(std::move(message.text));
    if (handled) continue;
    if (!options_.interactive || output_lost_) return handled;
    PrintNote("latte: " + VisibleLine(handled.error().message));
  }
  return {};
}

// A line that begins with a slash.
Status ChatLoop::Obey(const std::string& line) {
  if (line.starts_with("//")) return Answer(line.substr(1));
  const std::string name = line.substr(0, line.find_first_of(" \t\n"));
  const std::string argument(Trimmed(std::string_view(line).substr(name.size())));
  std::vector<std::string> known;
  for (const SlashCommand& command : kCommands) {
    if (command.name == name) return (this->*command.run)(argument);
    known.emplace_back(command.name);
  }
  return InvalidArgument(fmt::format(
      "unknown command '{}'{}; /help lists all (such as /reset); a message that begins with / is "
      "written with //",
      name.substr(0, 32), DidYouMean(name, known)));
}

Status ChatLoop::Help(const std::string& argument) {
  LATTE_RETURN_IF_ERROR(Unexpected("/help", argument));
  PrintNote(ChatHelp());
  return {};
}

Status ChatLoop::Exit(const std::string& argument) {
  LATTE_RETURN_IF_ERROR(Unexpected("/quit", argument));
  exits_ = true;
  return {};
}

Status ChatLoop::Reset(const std::string& argument) {
  LATTE_RETURN_IF_ERROR(Unexpected("/reset", argument));
  chat_->Reset();
  if (options_.interactive) PrintNote("[the conversation is empty]");
  return {};
}

Status ChatLoop::Undo(const std::string& argument) {
  LATTE_RETURN_IF_ERROR(Unexpected("/undo", argument));
  if (!chat_->Undo()) return InvalidArgument("/undo: there is no answer to remove");
  if (options_.interactive)
    PrintNote(
        fmt::format("[removed the last question; {} left]", Count(Questions(*chat_), "question")));
  return {};
}

Status ChatLoop::Regenerate(const std::string& argument) {
  LATTE_RETURN_IF_ERROR(Unexpected("/regenerate", argument));
  const std::vector<ChatMessage> before = chat_->Messages();
  if (!chat_->Undo()) return InvalidArgument("/regenerate: there is no question to answer again");
  std::string question = before[before.size() - 2].content.value_or("");
  ChatParams params = chat_->params();
  ++params.sampling.seed;
  params.chosen.emplace("seed");
  const bool greedy = Knows(*chat_, "temperature") && params.sampling.temperature == 0;
  if (greedy && options_.interactive) PrintNote("[temperature is 0: the answer will be the same]");
  LATTE_RETURN_IF_ERROR(chat_->SetParams(std::move(params)));
  const Status answered = Answer(std::move(question));
  const std::vector<ChatMessage> after = chat_->Messages();
  if (after.size() < before.size()) {
    LATTE_RETURN_IF_ERROR(chat_->SetMessages(before));
    if (answered) PrintNote("[the earlier answer is kept]");
  } else if (options_.interactive && !greedy && IsSameText(before.back(), after.back())) {
    PrintNote(Knows(*chat_, "temperature")
                  ? "[the answer is the same as before]"
                  : "[the answer is the same as before; perhaps the server's temperature is 0]");
  }
  return answered;
}

Status ChatLoop::System(const std::string& argument) {
  if (argument.empty()) {
    const std::optional<std::string> text = SystemText(chat_->Messages());
    PrintNote(text ? *text : "[there is no system message]");
    return {};
  }
  const std::string text = Unquoted(argument);
  const bool removes = text.empty();
  LATTE_RETURN_IF_ERROR(
      chat_->SetSystem(removes ? std::nullopt : std::optional<std::string>(text)));
  if (options_.interactive)
    PrintNote(removes ? "[there is no system message any more]"
                      : "[the system message is replaced, for the conversation so far too]");
  return {};
}

Status ChatLoop::SetParameter(const std::string& argument) {
  if (argument.empty()) {
    PrintNote(ParametersText(chat_->params(), chat_->leaves_rest_to_server()));
    return {};
  }
  const std::string name = argument.substr(0, argument.find_first_of(" \t"));
  const std::string text(Trimmed(std::string_view(argument).substr(name.size())));
  if (text.empty()) return InvalidArgument(fmt::format("/set: expected a value after '{}'", name));
  LATTE_ASSIGN_OR_RETURN(ChatParams params, WithParameter(chat_->params(), name, text));
  LATTE_RETURN_IF_ERROR(chat_->SetParams(std::move(params)));
  if (options_.interactive)
    PrintNote(fmt::format("[{} is {}]", name, ParameterText(chat_->params(), name)));
  return {};
}

Status ChatLoop::Stats(const std::string& argument) {
  LATTE_RETURN_IF_ERROR(Unexpected("/stats", argument));
  options_.stats = !options_.stats;
  if (options_.interactive)
    PrintNote(options_.stats ? "[speeds follow every answer]" : "[speeds are no longer printed]");
  if (options_.stats && last_) NoteStats(*last_);
  return {};
}

Status ChatLoop::Save(const std::string& argument) {
  const std::string file = Unquoted(argument);
  LATTE_RETURN_IF_ERROR(NeedsFile("/save", file));
  LATTE_RETURN_IF_ERROR(SaveTranscript(UserPath(file), options_.model, chat_->Messages()));
  if (options_.interactive)
    PrintNote(fmt::format("[{} saved in {}]", Count(Questions(*chat_), "question"), file));
  return {};
}

Status ChatLoop::Load(const std::string& argument) {
  const std::string file = Unquoted(argument);
  LATTE_RETURN_IF_ERROR(NeedsFile("/load", file));
  LATTE_ASSIGN_OR_RETURN(std::vector<ChatMessage> messages, LoadTranscript(UserPath(file)));
  LATTE_RETURN_IF_ERROR(chat_->SetMessages(std::move(messages)));
  if (options_.interactive)
    PrintNote(fmt::format("[{} loaded from {}]", Count(Questions(*chat_), "question"), file));
  return {};
}

Status ChatLoop::Answer(std::string message) {
  AnswerPrinter printer(/*markdown=*/!options_.plain);
  Status printed;
  std::atomic<bool> began = false;
  Progress progress("prompt", "tokens");
  progress.Tick();
  const LateInterrupt late(interrupts_, [&] {
    if (!began) progress.EndWith(std::string(kStopping));
  });
  const auto print = [&](const AnswerPiece& piece) {
    if (piece.empty() && !began) {
      const PromptProgress prompt = chat_->prompt_progress();
      if (prompt.total > 0) progress.Show(prompt.done, prompt.total);
    }
    if (!piece.empty() && !began) {
      progress.Clear();
      began = true;
    }
    if (!piece.empty()) printed = printer.Add(piece);
    return printed && !interrupts_.Take();
  };
  Result<ChatAnswer> answer = chat_->Ask(std::move(message), print);
  progress.Clear();
  output_lost_ = !printed;
  LATTE_RETURN_IF_ERROR(printed);
  if (!answer) {
    LATTE_RETURN_IF_ERROR(printer.Finish());
    Error error = std::move(answer).error();
    if (error.code == Code::kExhausted)
      error.message += takes_commands_ ? " (/reset or /undo forgets; --context sets the end)"
                                       : " (--context sets the end)";
    return tl::unexpected(std::move(error));
  }
  LATTE_RETURN_IF_ERROR(printer.Finish());
  if (answer->text.empty()) LATTE_RETURN_IF_ERROR(Print("\n"));
  for (const std::string& note : answer->notes)
    if (noted_.insert(note).second) PrintNote(fmt::format("[{}]", VisibleLine(note)));
  NoteEnd(*answer);
  if (options_.stats) NoteStats(*answer);
  last_ = *std::move(answer);
  return {};
}

void ChatLoop::NoteEnd(const ChatAnswer& answer) const {
  switch (answer.end) {
    case ChatEnd::kStop:
      return;
    case ChatEnd::kLength:
      return PrintNote(fmt::format("[cut after {} tokens; -n sets how many{}]",
                                   answer.generated_tokens,
                                   takes_commands_ ? ", here /set max_tokens" : ""));
    case ChatEnd::kContextFull:
      return PrintNote(fmt::format("[cut: the context of {} tokens is full; --context sets it{}]",
                                   options_.context,
                                   takes_commands_ ? ", /reset forgets the conversation" : ""));
    case ChatEnd::kCancelled:
      return PrintNote(answer.generated_tokens == 0 ? "[stopped before the answer began; not kept]"
                                                    : "[stopped; the text so far is kept]");
  }
}

void ChatLoop::NoteStats(const ChatAnswer& answer) const {
  if (answer.end == ChatEnd::kCancelled && answer.generated_tokens == 0) {
    if (answer.prompt_tokens > 0)  // a server does not say it
      PrintNote(fmt::format("[prompt {} tokens, {} of them cached, {} computed]",
                            answer.prompt_tokens, answer.reused_tokens, answer.computed_tokens));
    return;
  }
  const int64_t computed = answer.prompt_tokens - answer.reused_tokens;
  const std::string context =
      options_.context == 0
          ? ""
          : fmt::format("; context {} of {}", answer.prompt_tokens + answer.generated_tokens,
                        options_.context);
  const std::string seed =
      Knows(*chat_, "seed") ? fmt::format("; seed {}", chat_->params().sampling.seed) : "";
  PrintNote(
      fmt::format("[prompt {} tokens, {} of them cached, {:.1f} tokens/s; generated {}, {:.1f} "
                  "tokens/s{}{}]",
                  answer.prompt_tokens, answer.reused_tokens,
                  PerSecond(computed, answer.prompt_seconds), answer.generated_tokens,
                  PerSecond(answer.generated_tokens - 1, answer.generate_seconds), context, seed));
}

}  // namespace latte

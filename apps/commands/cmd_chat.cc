// latte chat: a conversation, in a terminal or through a pipe. Standard output carries only
// answers; prompts, notes and errors go to standard error.
#include <csignal>
#include <cstdio>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "apps/flags/command.h"
#include "apps/flags/engine_flags.h"
#include "apps/terminal/interrupts.h"
#include "apps/terminal/line_reader.h"
#include "src/engine/engine_core.h"
#include "src/jobs/chat_session.h"

namespace latte {
namespace {

constexpr const char* kHelp =
    "/reset  clear the conversation\n"
    "/undo   remove the last question and its answer\n"
    "/exit   leave (so does Ctrl-D)\n"
    "/help   this list\n"
    "Ctrl-C stops an answer. To send a message that begins with /, type //.\n";

struct ChatFlags {
  std::string model = "tiny";
  std::optional<std::string> system;
  std::optional<bool> thinking;
  std::optional<int64_t> context;
  bool stats = false;
  StructFlags<StopConditions> stop;
  StructFlags<Request> request;
  SamplingFlags sampling;
  EngineFlags engine;
};

void Note(std::string_view text) { std::fputs(fmt::format("{}\n", text).c_str(), stderr); }

// The interactive loop of a conversation.
class ChatLoop {
 public:
  // `interrupts` has a descriptor only in a terminal.
  ChatLoop(ChatSession* chat, const Interrupts& interrupts, const ChatFlags& flags, int64_t context)
      : chat_(chat),
        interrupts_(interrupts),
        flags_(flags),
        context_(context),
        terminal_(interrupts.fd() >= 0) {}

  // Errors: in a pipe, the first error; in a terminal, only lost input or output.
  Status Run() {
    if (terminal_)
      Note(fmt::format("{}: type a message; /help lists commands, Ctrl-D leaves", flags_.model));
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
      if (!terminal_ || handled.error().code == Code::kUnavailable) return handled;
      Note("latte: " + ToString(handled.error()));
    }
    if (terminal_) Note("");
    return {};
  }

 private:
  Status Handle(const std::string& line) {
    if (line.find_first_not_of(" \t") == std::string::npos) return {};
    if (line.starts_with("//")) return Answer(line.substr(1));
    if (!line.starts_with('/')) return Answer(line);
    if (line == "/help") {
      std::fputs(kHelp, stderr);
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

  Status Answer(std::string message) {
    Status printed;
    const auto print = [&](std::string_view text) {
      if (!text.empty()) printed = Print(text);
      return printed && !interrupts_.Take();
    };
    Result<ChatAnswer> answer = chat_->Ask(std::move(message), print);
    LATTE_RETURN_IF_ERROR(printed);
    if (!answer) {
      Error error = std::move(answer).error();
      if (error.code == Code::kExhausted) error.message += " (/reset or /undo forgets)";
      return tl::unexpected(std::move(error));
    }
    if (!answer->text.ends_with('\n')) LATTE_RETURN_IF_ERROR(Print("\n"));
    for (const std::string& note : answer->notes)
      if (noted_.insert(note).second) Note(fmt::format("[{}]", note));
    NoteEnd(*answer);
    if (flags_.stats) NoteStats(*answer);
    return {};
  }

  void NoteEnd(const ChatAnswer& answer) const {
    switch (answer.end) {
      case ChatEnd::kStop:
        return;
      case ChatEnd::kLength:
        return Note(fmt::format("[cut after {} tokens; -n sets how many]", answer.tokens.size()));
      case ChatEnd::kContextFull:
        return Note(fmt::format(
            "[cut: the context of {} tokens is full; /reset forgets the conversation]", context_));
      case ChatEnd::kCancelled:
        return Note(answer.tokens.empty() ? "[stopped before the answer began; not kept]"
                                          : "[stopped; the text so far is kept]");
    }
  }

  void NoteStats(const ChatAnswer& answer) const {
    const auto generated = static_cast<int64_t>(answer.tokens.size());
    const int64_t computed = answer.prompt_tokens - answer.reused_tokens;
    Note(fmt::format(
        "[prompt {} tokens, {} of them cached, {:.1f} tokens/s; generated {}, {:.1f} tokens/s; "
        "context {} of {}]",
        answer.prompt_tokens, answer.reused_tokens, PerSecond(computed, answer.prompt_seconds),
        generated, PerSecond(generated - 1, answer.generate_seconds),
        answer.prompt_tokens + generated, context_));
  }

  ChatSession* chat_;
  const Interrupts& interrupts_;
  const ChatFlags& flags_;
  int64_t context_;
  bool terminal_;
  std::set<std::string> noted_;  // notes that were shown already
};

Result<int64_t> ContextFor(const ChatFlags& flags, int64_t max_position) {
  const int64_t context = flags.context.value_or(max_position);
  if (context < 1 || context > max_position)
    return InvalidArgument(
        fmt::format("--context: expected 1 to {}, which the model was made for, found {}",
                    max_position, context));
  return context;
}

Status ChatCommand(const ChatFlags& flags) {
  LATTE_ASSIGN_OR_RETURN(const OpenedModel opened, OpenModel(flags.model));
  LATTE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(opened.dir));
  LATTE_ASSIGN_OR_RETURN(ChatPromptBuilder builder,
                         ChatPromptBuilder::Create(tokenizer, opened.model->config()));
  for (const std::string& caveat : builder.UnusedFeatures()) Note("latte: warning: " + caveat);
  LATTE_ASSIGN_OR_RETURN(const int64_t context,
                         ContextFor(flags, opened.model->config().max_position));
  LATTE_ASSIGN_OR_RETURN(EngineOptions options, flags.engine.Options(flags.model));
  options.prefix_cache = true;  // the prompt of a turn begins with the earlier turns
  LATTE_ASSIGN_OR_RETURN(
      const Settings engine_settings,
      ResolveOptionsForOne(options, opened.model->config(), opened.machine, context));
  WarnAboutRates(engine_settings.rates_warning);
  Interrupts interrupts;
  if (isatty(STDIN_FILENO) != 0) {
    LATTE_ASSIGN_OR_RETURN(interrupts, Interrupts::Catch({SIGINT}));
  }
  LATTE_ASSIGN_OR_RETURN(
      const auto core,
      EngineCore::Create({opened.model.get(), &opened.machine, &tokenizer}, engine_settings));
  WarnIfFewer(options.threads, core->settings().options.threads);
  StopConditions stop = flags.stop.values;
  LATTE_RETURN_IF_ERROR(flags.stop.Apply(stop));
  LATTE_RETURN_IF_ERROR(flags.stop.Validate(stop));
  Request request;
  LATTE_RETURN_IF_ERROR(flags.request.Apply(request));
  ChatSettings settings{.system = flags.system,
                        .thinking = flags.thinking,
                        .sampling = {},
                        .max_new_tokens = stop.max_tokens,
                        .context = context,
                        .keep_special = request.keep_special};
  LATTE_ASSIGN_OR_RETURN(settings.sampling, flags.sampling.Params(opened));
  LATTE_ASSIGN_OR_RETURN(ChatSession chat,
                         ChatSession::Create(std::move(builder), core.get(), std::move(settings)));
  return ChatLoop(&chat, interrupts, flags, context).Run();
}

}  // namespace

Command AddChat(const FlagSet& app) {
  auto flags = std::make_shared<ChatFlags>();
  const FlagSet sub = app.AddCommand("chat", "Talk to a model, in a terminal or through a pipe");
  sub.Footer(
      "Every line is a message; in a pipe, a newline follows every answer.\n"
      "The checkpoint's chat template is used, or the format of its family.\n\n" +
      std::string(kHelp));
  sub.Add("MODEL", flags->model, "model (default: tiny)");
  sub.Add("--system", flags->system, "system message before the conversation");
  const Flag thinking = sub.AddSwitch(
      "--thinking", [flags] { flags->thinking = true; },
      "let the model reason first, if its chat format has the choice");
  sub.AddSwitch(
         "--no-thinking", [flags] { flags->thinking = false; },
         "let it answer at once, if its chat format has the choice")
      .Excludes(thinking);
  flags->stop.values.max_tokens = 1024;
  flags->stop.Add(sub, [](const Field& f, std::string_view) { return f.name == "max_tokens"; });
  sub.Add("--context", flags->context,
          "maximum tokens of the conversation (default: the model's context)");
  flags->sampling.Add(sub);
  flags->request.Add(sub,
                     [](const Field& f, std::string_view) { return f.name == "keep_special"; });
  sub.AddSwitch("--stats", flags->stats, "print speeds and cache use after every answer");
  flags->engine.AddForOneSequence(sub);
  return {sub, [flags] { return ChatCommand(*flags); }};
}

}  // namespace latte

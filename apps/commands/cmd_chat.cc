// latte chat: a conversation with a local model or with a server.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "apps/chat/chat_json.h"
#include "apps/chat/chat_loop.h"
#include "apps/chat/message_reader.h"
#include "apps/flags/command.h"
#include "apps/flags/engine_flags.h"
#include "apps/flags/remote_flags.h"
#include "apps/terminal/interrupts.h"
#include "apps/terminal/line_editor.h"
#include "apps/terminal/line_reader.h"
#include "apps/terminal/screen.h"
#include "src/base/json_out.h"
#include "src/checkpoint/model_files.h"
#include "src/engine/core/engine_core.h"
#include "src/session/chat_session.h"
#include "src/session/remote/remote_chat.h"

namespace latte {
namespace {

struct ChatFlags {
  std::string model = "tiny";
  std::optional<std::string> system;
  std::optional<bool> thinking;
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_file;
  bool stats = false;
  bool plain = false;
  bool json = false;
  StructFlags<StopConditions> stop;
  StructFlags<Request> request;
  SamplingFlags sampling;
  EngineFlags engine;
  RemoteFlags remote;
  // Flags that need a local model, and flags that need a server, by name.
  std::vector<std::pair<std::string, Flag>> local;
  std::vector<std::pair<std::string, Flag>> of_server;
};

// The user's signals while the program runs. Threads of the engine must start after it.
struct Signals {
  Interrupts interrupts;
  Interrupts resizes;

  // Ctrl-C is caught where it ends an answer: in a conversation in a terminal. Elsewhere it ends
  // the program.
  static Result<Signals> Catch(const ChatFlags& flags) {
    Signals out;
    if (flags.json || !IsTerminal(STDIN_FILENO)) return out;
    LATTE_ASSIGN_OR_RETURN(out.interrupts, Interrupts::Catch({SIGINT}));
    LATTE_ASSIGN_OR_RETURN(out.resizes, Interrupts::Catch({SIGWINCH, SIGCONT}));
    return out;
  }
};

// Shown where the user names no model.
constexpr std::string_view kTinyHint =
    "No model is named, so this is tiny, which comes with Latte: it tells children's stories and "
    "cannot converse. latte pull downloads others, docs/start.md names some.";

using Message = std::optional<std::string>;

// The one message of -p or --prompt-file; null: neither is given.
Result<Message> OneMessage(const ChatFlags& flags) {
  if (flags.prompt && flags.prompt_file)
    return InvalidArgument("give the message once: with -p or with --prompt-file, not with both");
  if (!flags.prompt_file) return flags.prompt;
  LATTE_ASSIGN_OR_RETURN(std::string text, ReadText(*flags.prompt_file));
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

Result<std::unique_ptr<LineSource>> OpenLines(const Signals& signals) {
  const bool terminal = IsTerminal(STDIN_FILENO);
  if (!terminal || !MovesCursor(STDERR_FILENO))
    return std::make_unique<LineReader>(STDIN_FILENO, signals.interrupts.fd(), terminal);
  return LineEditor::Open(signals.interrupts, signals.resizes, HistoryFile(HistoryPath()));
}

// All messages of a pipe or a file.
Result<std::vector<std::string>> ReadMessages() {
  if (IsTerminal(STDIN_FILENO))
    return InvalidArgument("--json: expected the message with -p, or messages through a pipe");
  LineReader lines(STDIN_FILENO, -1, false);
  MessageReader reader(&lines);
  std::vector<std::string> out;
  while (true) {
    LATTE_ASSIGN_OR_RETURN(MessageReader::Message message, reader.Next());
    if (message.event != LineEvent::kLine) return out;
    if (message.text.find_first_not_of(" \t\n") != std::string::npos)
      out.push_back(std::move(message.text));
  }
}

Status Talk(Conversation* chat, const Signals& signals, const ChatFlags& flags,
            const Message& message, const std::string& model, int64_t context) {
  const bool names_model =
      std::any_of(flags.local.begin(), flags.local.end(),
                  [](const auto& flag) { return flag.first == "MODEL" && flag.second.given(); });
  const bool is_default = flags.remote.url.empty() && flags.remote.model.empty() && !names_model;
  if (flags.json) {
    std::vector<std::string> messages;
    if (message) {
      messages.push_back(*message);
    } else {
      LATTE_ASSIGN_OR_RETURN(messages, ReadMessages());
    }
    LATTE_ASSIGN_OR_RETURN(const std::string json, AnswersJson(chat, model, messages));
    return Print(json);
  }
  ChatLoop loop(chat, signals.interrupts,
                {.model = model,
                 .hint = std::string(is_default ? kTinyHint : ""),
                 .context = context,
                 .stats = flags.stats,
                 .plain = flags.plain,
                 .interactive = IsTerminal(STDIN_FILENO)});
  if (message) return loop.Answer(*message);
  LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<LineSource> lines, OpenLines(signals));
  return loop.Run(lines.get());
}

Result<ChatParams> ParamsOf(const ChatFlags& flags) {
  ChatParams out{.sampling = {}, .stop = flags.stop.values, .chosen = {}};
  LATTE_RETURN_IF_ERROR(flags.stop.Apply(out.stop));
  LATTE_RETURN_IF_ERROR(flags.stop.Named(CheckParams(out)));
  return out;
}

// The longest conversation: what --context says, else what the model was made for.
Result<int64_t> ChatContext(int64_t asked, int64_t max_position) {
  const int64_t context = asked == 0 ? max_position : asked;
  if (context > max_position)
    return InvalidArgument(
        fmt::format("--context: expected 1 to {}, which the model was made for, found {}",
                    max_position, context));
  return context;
}

// `context`, or what of it fits in memory. Where weights leave no memory, a chat of usual length is
// possible still: the user has been warned that they are read from disk.
int64_t FittingContext(const Settings& settings, const OpenedModel& opened, int64_t context) {
  constexpr int64_t kLeast = 4096;
  if (!opened.room.available_bytes) return context;
  const int64_t fits = LargestContext(opened.model->config(), settings.options, settings.cache_spec,
                                      opened.room.free_bytes());
  return std::min(context, std::max(fits, kLeast));
}

Status LocalChat(const ChatFlags& flags, const Message& message) {
  for (const auto& [name, flag] : flags.of_server)
    if (flag.given() && name != "--model")
      return InvalidArgument(
          fmt::format("{}: expected --url too, because only a server needs it", name));
  const std::string& model = flags.remote.model.empty() ? flags.model : flags.remote.model;
  LATTE_ASSIGN_OR_RETURN(EngineOptions options, flags.engine.Options(model));
  LATTE_ASSIGN_OR_RETURN(const OpenedModel opened,
                         OpenModel(model, {.drafts = &options, .device = options.device}));
  LATTE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, LoadTokenizer(opened.dir));
  LATTE_ASSIGN_OR_RETURN(ChatPromptBuilder builder,
                         ChatPromptBuilder::Create(tokenizer, opened.model->config()));
  for (const std::string& caveat : builder.UnusedFeatures()) Warn(caveat);
  LATTE_ASSIGN_OR_RETURN(int64_t context,
                         ChatContext(options.max_tokens, opened.model->config().max_position));
  options.prefix_cache = true;  // the prompt of a turn begins with the earlier turns
  LATTE_ASSIGN_OR_RETURN(
      Settings engine_settings,
      ResolveOptionsForOne(options, opened.model->config(), opened.device.machine(), context));
  if (options.max_tokens == 0) {
    context = FittingContext(engine_settings, opened, context);
    engine_settings.SizeForOne(context);
  }
  WarnAboutRates(engine_settings.rates_warning);
  WarnIfDense(opened.model->config(), engine_settings.attention);
  LATTE_ASSIGN_OR_RETURN(const Signals signals, Signals::Catch(flags));
  LATTE_ASSIGN_OR_RETURN(const auto core, EngineCore::Create({.model = opened.model.get(),
                                                              .machine = &opened.device.machine(),
                                                              .tokenizer = &tokenizer,
                                                              .host = &opened.device.host()},
                                                             engine_settings));
  WarnIfFewer(options.threads, core->settings().options.threads);
  Request request;
  LATTE_RETURN_IF_ERROR(flags.request.Apply(request));
  ChatSettings settings{.system = flags.system,
                        .thinking = flags.thinking,
                        .params = {},
                        .context = context,
                        .keep_special = request.keep_special};
  LATTE_ASSIGN_OR_RETURN(settings.params, ParamsOf(flags));
  LATTE_ASSIGN_OR_RETURN(settings.params.sampling, flags.sampling.Params(opened));
  SayDrawn(flags.sampling.Seed(settings.params.sampling));
  LATTE_ASSIGN_OR_RETURN(ChatSession chat,
                         ChatSession::Create(std::move(builder), core.get(), std::move(settings)));
  return Talk(&chat, signals, flags, message, model, context);
}

// What flags and variables set: a server gets nothing else.
Result<ChatParams> ChosenParams(const ChatFlags& flags) {
  LATTE_ASSIGN_OR_RETURN(ChatParams out, ParamsOf(flags));
  LATTE_RETURN_IF_ERROR(flags.sampling.ApplyTo(&out.sampling, &out.chosen));
  LATTE_RETURN_IF_ERROR(flags.stop.ForEachSet(
      [&](const Field& field, const auto&) { out.chosen.emplace(field.name); }));
  return out;
}

Status CheckNoLocalFlag(const ChatFlags& flags) {
  std::vector<std::string> given = flags.engine.Given();
  for (const std::string& name : flags.request.Given()) given.push_back(name);
  for (const auto& [name, flag] : flags.local)
    if (flag.given()) given.push_back(name);
  if (given.empty()) return {};
  return InvalidArgument(fmt::format(
      "{}: expected no flag of a local model together with --url, whose server runs the model",
      given.front()));
}

Status ServerChat(const ChatFlags& flags, const Message& message) {
  LATTE_RETURN_IF_ERROR(CheckNoLocalFlag(flags));
  RemoteChatSettings settings{
      .model = flags.remote.model, .system = flags.system, .thinking = flags.thinking};
  LATTE_ASSIGN_OR_RETURN(settings.params, ChosenParams(flags));
  const HttpClientOptions options{.ca_file = flags.remote.ca_file};
  LATTE_ASSIGN_OR_RETURN(const Signals signals, Signals::Catch(flags));
  LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<RemoteChat> chat,
                         RemoteChat::Open(flags.remote.Address(), options, std::move(settings),
                                          [&] { return signals.interrupts.Take(); }));
  return Talk(chat.get(), signals, flags, message, chat->model(), 0);
}

Status RunChat(const ChatFlags& flags) {
  UseUtf8();
  LATTE_ASSIGN_OR_RETURN(const Message message, OneMessage(flags));
  return flags.remote.url.empty() ? LocalChat(flags, message) : ServerChat(flags, message);
}

}  // namespace

Command AddChat(const FlagSet& app) {
  auto flags = std::make_shared<ChatFlags>();
  const FlagSet sub = app.AddCommand("chat", "Talk to a model, in a terminal or through a pipe");
  sub.Footer(
      "Every line is a message, or several lines between two \"\"\"; in a pipe, a newline follows "
      "every answer.\n"
      "The checkpoint's chat template is used, or the format of its family.\n"
      "With --url a server answers; flags of sampling, -n, --system and --thinking are sent to it "
      "if they are given, and flags of a local model are refused.\n\n" +
      ChatHelp());
  flags->local.emplace_back(
      "MODEL", sub.Add("MODEL", flags->model, "model, also as -m MODEL (default: tiny)"));
  flags->remote.AddUrl(sub);
  flags->of_server = flags->remote.AddOthers(sub);
  const FlagSet prompt = sub.Group("Prompt");
  prompt.Add("-p,--prompt", flags->prompt, "ask this alone, print the answer and end");
  prompt
      .Add("-f,--prompt-file", flags->prompt_file,
           "ask the text of a file alone; -: standard input")
      .Value("FILE");
  prompt.Add("--system", flags->system, "system message before the conversation");
  const Flag thinking = prompt.AddSwitch(
      "--thinking", [flags] { flags->thinking = true; },
      "let the model reason first, if its chat format has the choice");
  prompt
      .AddSwitch(
          "--no-thinking", [flags] { flags->thinking = false; },
          "let it answer at once, if its chat format has the choice")
      .Excludes(thinking);
  flags->stop.values.max_tokens = 1024;
  flags->stop.Add(sub, [](const Field&, std::string_view) { return true; });
  flags->sampling.Add(sub);
  flags->request.Add(sub,
                     [](const Field& f, std::string_view) { return f.name == "keep_special"; });
  const FlagSet output = sub.Group("Output");
  output.AddSwitch("--stats", flags->stats, "print speeds and cache use after every answer");
  output.AddSwitch("--plain", flags->plain,
                   "show answers as they are written, with the marks of Markdown");
  output.AddSwitch("--json", flags->json,
                   "one JSON object with messages, answers and counts; needs -p or a pipe");
  flags->engine.AddForOneSequence(sub, {.context = true, .drafts = true});
  return {sub, [flags] { return RunChat(*flags); }};
}

}  // namespace latte

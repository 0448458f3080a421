// latte chat: a conversation with a local model or with a server.
#include <csignal>
#include <cstdio>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "apps/commands/chat_loop.h"
#include "apps/flags/command.h"
#include "apps/flags/engine_flags.h"
#include "apps/flags/remote_flags.h"
#include "apps/terminal/interrupts.h"
#include "src/base/json_out.h"
#include "src/engine/engine_core.h"
#include "src/jobs/chat_session.h"
#include "src/jobs/remote/remote_chat.h"

namespace latte {
namespace {

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
  RemoteFlags remote;
  // Flags that need a local model, and flags that need a server, by name.
  std::vector<std::pair<std::string, Flag>> local;
  std::vector<std::pair<std::string, Flag>> of_server;
};

void Note(std::string_view text) { std::fputs(fmt::format("{}\n", text).c_str(), stderr); }

// Ctrl-C is caught only in a terminal.
Result<Interrupts> CatchInTerminal() {
  if (isatty(STDIN_FILENO) == 0) return Interrupts();
  return Interrupts::Catch({SIGINT});
}

Result<int64_t> ContextFor(const ChatFlags& flags, int64_t max_position) {
  const int64_t context = flags.context.value_or(max_position);
  if (context < 1 || context > max_position)
    return InvalidArgument(
        fmt::format("--context: expected 1 to {}, which the model was made for, found {}",
                    max_position, context));
  return context;
}

Status LocalChat(const ChatFlags& flags) {
  for (const auto& [name, flag] : flags.of_server)
    if (flag.given())
      return InvalidArgument(
          fmt::format("{}: expected --url too, because only a server needs it", name));
  LATTE_ASSIGN_OR_RETURN(EngineOptions options, flags.engine.Options(flags.model));
  LATTE_ASSIGN_OR_RETURN(const OpenedModel opened, OpenModel(flags.model, {.drafts = &options}));
  LATTE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(opened.dir));
  LATTE_ASSIGN_OR_RETURN(ChatPromptBuilder builder,
                         ChatPromptBuilder::Create(tokenizer, opened.model->config()));
  for (const std::string& caveat : builder.UnusedFeatures()) Note("latte: warning: " + caveat);
  LATTE_ASSIGN_OR_RETURN(const int64_t context,
                         ContextFor(flags, opened.model->config().max_position));
  options.prefix_cache = true;  // the prompt of a turn begins with the earlier turns
  LATTE_ASSIGN_OR_RETURN(
      const Settings engine_settings,
      ResolveOptionsForOne(options, opened.model->config(), opened.machine, context));
  WarnAboutRates(engine_settings.rates_warning);
  WarnIfDense(opened.model->config(), engine_settings.attention);
  LATTE_ASSIGN_OR_RETURN(const Interrupts interrupts, CatchInTerminal());
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
  return ChatLoop(&chat, interrupts, {flags.model, context, flags.stats}).Run();
}

// What flags and variables set, as members of the requests.
Result<std::string> RequestFields(const ChatFlags& flags) {
  JsonOut fields = JsonOut::object();
  LATTE_RETURN_IF_ERROR(flags.sampling.AddTo(&fields));
  LATTE_RETURN_IF_ERROR(flags.stop.ForEachSet(
      [&](const Field& field, const auto& value) { fields[std::string(JsonKey(field))] = value; }));
  return Dump(fields);
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

Status ServerChat(const ChatFlags& flags) {
  LATTE_RETURN_IF_ERROR(CheckNoLocalFlag(flags));
  RemoteChatSettings settings{
      .model = flags.remote.model, .system = flags.system, .thinking = flags.thinking};
  LATTE_ASSIGN_OR_RETURN(settings.fields, RequestFields(flags));
  const HttpClientOptions options{.ca_file = flags.remote.ca_file};
  LATTE_ASSIGN_OR_RETURN(const Interrupts interrupts, CatchInTerminal());
  LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<RemoteChat> chat,
                         RemoteChat::Open(flags.remote.Address(), options, std::move(settings)));
  return ChatLoop(chat.get(), interrupts, {.model = chat->model(), .stats = flags.stats}).Run();
}

Status ChatCommand(const ChatFlags& flags) {
  return flags.remote.url.empty() ? LocalChat(flags) : ServerChat(flags);
}

}  // namespace

Command AddChat(const FlagSet& app) {
  auto flags = std::make_shared<ChatFlags>();
  const FlagSet sub = app.AddCommand("chat", "Talk to a model, in a terminal or through a pipe");
  sub.Footer(
      "Every line is a message; in a pipe, a newline follows every answer.\n"
      "The checkpoint's chat template is used, or the format of its family.\n"
      "With --url a server answers; flags of sampling, -n, --system and --thinking are sent to it "
      "if they are given, and flags of a local model are refused.\n\n" +
      std::string(kChatHelp));
  flags->local.emplace_back("MODEL", sub.Add("MODEL", flags->model, "model (default: tiny)"));
  flags->remote.AddUrl(sub);
  flags->of_server = flags->remote.AddOthers(sub);
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
  flags->local.emplace_back(
      "--context", sub.Add("--context", flags->context,
                           "maximum tokens of the conversation (default: the model's context)"));
  flags->sampling.Add(sub);
  flags->request.Add(sub,
                     [](const Field& f, std::string_view) { return f.name == "keep_special"; });
  sub.AddSwitch("--stats", flags->stats, "print speeds and cache use after every answer");
  flags->engine.AddForOneSequence(sub, {.drafts = true});
  return {sub, [flags] { return ChatCommand(*flags); }};
}

}  // namespace latte

// latte run: generates text for a prompt and prints it token by token.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "apps/flags/command.h"
#include "apps/flags/engine_flags.h"
#include "apps/ranks.h"
#include "apps/terminal/answer/answer_printer.h"
#include "apps/terminal/answer/screen_text.h"
#include "apps/terminal/interrupts.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/screen.h"
#include "src/base/file.h"
#include "src/base/json_out.h"
#include "src/base/limits/memory.h"
#include "src/chat/prompt.h"
#include "src/checkpoint/model_files.h"
#include "src/engine/core/complete.h"
#include "src/engine/core/engine_core.h"
#include "src/grammar/grammar.h"

namespace latte {
namespace {

struct RunFlags {
  std::string model = "tiny";
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_file;
  bool chat = false;
  bool no_echo = false;
  bool json = false;
  bool stats = false;
  SamplingFlags sampling;
  StructFlags<StopConditions> stop;
  StructFlags<Request> request;
  CheckWeightsFlag check_weights;
  EngineFlags engine;

  // Errors: kInvalidArgument naming the flag or the variable.
  Result<StopConditions> Stop() const {
    StopConditions out;
    LATTE_RETURN_IF_ERROR(stop.Apply(out));
    LATTE_RETURN_IF_ERROR(stop.Validate(out));
    if (out.max_tokens > 0) return out;
    return tl::unexpected(
        stop.Named(InvalidArgument("max_tokens: expected 1 or more, found 0")).error());
  }
};

Result<std::string> PromptText(const RunFlags& flags) {
  if (flags.prompt && flags.prompt_file)
    return InvalidArgument("give the prompt once: with -p or with --prompt-file, not with both");
  if (flags.prompt) return *flags.prompt;
  if (!flags.prompt_file && IsTerminal(STDIN_FILENO))
    Tell("Type the prompt and end it with Ctrl-D (or give it with -p):\n");
  LATTE_ASSIGN_OR_RETURN(std::string text, ReadText(flags.prompt_file.value_or("-")));
  if (text.ends_with('\n')) text.pop_back();  // the end of the last line of a file
  return text;
}

// The ids of the prompt. Under --chat it is the message of a user, and the chat format says which
// tokens end the answer.
Status SetTokens(const RunFlags& flags, const OpenedModel& opened, const Tokenizer& tokenizer,
                 const std::string& prompt, Request* request) {
  if (!flags.chat) {
    LATTE_ASSIGN_OR_RETURN(request->tokens,
                           tokenizer.Encode(prompt, {.add_bos = tokenizer.adds_bos(),
                                                     .parse_special = request->parse_special}));
    return {};
  }
  LATTE_ASSIGN_OR_RETURN(const ChatPromptBuilder builder,
                         ChatPromptBuilder::Create(tokenizer, opened.model->config()));
  ChatMessage message;
  message.role = "user";
  message.content = prompt;
  LATTE_ASSIGN_OR_RETURN(ChatPrompt built, builder.Build(std::vector{message}, {}));
  request->tokens = std::move(built.ids);
  const auto& stops = builder.stop_tokens();
  request->stop.tokens.insert(request->stop.tokens.end(), stops.begin(), stops.end());
  return {};
}

// The longest sequence: what --context says, else what the model was made for.
Result<int64_t> LongestSequence(int64_t asked, int64_t max_position) {
  if (asked > max_position)
    return InvalidArgument(
        fmt::format("--context: expected 1 to {}, which the model was made for, found {}",
                    max_position, asked));
  return asked == 0 ? max_position : asked;
}

// The context size: prompt and answer, at most `longest`.
Result<int64_t> RunContext(int64_t prompt, int64_t max_new, int64_t longest) {
  if (prompt >= longest)
    return InvalidArgument(fmt::format(
        "the prompt has {} tokens, but the context is {}; shorten the prompt", prompt, longest));
  return std::min(longest, prompt + std::min(max_new, longest));
}

// `disk_bytes`: read while the answer was generated.
JsonOut StatsJson(const Settings& settings, const ModelConfig& config, int64_t prompt_tokens,
                  const Completion& answer, std::optional<int64_t> disk_bytes) {
  const auto generated = static_cast<int64_t>(answer.tokens.size());
  const int64_t expanded =
      config.mla.expanded() * settings.cache_spec.layers * SizeOf(settings.dtype);
  return {{"prompt_tokens", prompt_tokens},
          {"generated_tokens", generated},
          {"drafted_tokens", answer.drafted_tokens},
          {"accepted_tokens", answer.accepted_tokens},
          {"time_to_first_token_s", answer.prompt_seconds},
          {"prompt_tokens_per_s", PerSecond(prompt_tokens, answer.prompt_seconds)},
          {"generated_tokens_per_s", PerSecond(generated - 1, answer.generate_seconds)},
          {"cache_bytes_per_token", settings.cache_spec.bytes_per_token()},
          {"decompressed_bytes_per_token", expanded},
          {"disk_bytes_per_token",
           disk_bytes ? JsonOut(*disk_bytes / std::max<int64_t>(generated - 1, 1)) : nullptr},
          {"attention", Name(settings.attention)},
          {"dtype", Name(settings.dtype)}};
}

void PrintStats(const JsonOut& stats) {
  const auto cache = stats["cache_bytes_per_token"].get<int64_t>();
  const auto expanded = stats["decompressed_bytes_per_token"].get<int64_t>();
  const auto drafted = stats["drafted_tokens"].get<int64_t>();
  const std::string drafts = drafted == 0
                                 ? ""
                                 : fmt::format("drafted     {:>6} tokens, {} accepted\n", drafted,
                                               stats["accepted_tokens"].get<int64_t>());
  constexpr int64_t kLeastShown = 10'000;  // less would be 0.00 MB
  const JsonOut& disk = stats["disk_bytes_per_token"];
  const std::string disk_line = disk.is_null() || disk < kLeastShown
                                    ? ""
                                    : fmt::format("disk        {:>9} read per generated token\n",
                                                  MemoryText(disk.get<int64_t>()));
  const std::string lines = fmt::format(
      "\nprompt      {:>6} tokens  {:>9.1f} tokens/s\n"
      "generated   {:>6} tokens  {:>9.1f} tokens/s\n"
      "{}"
      "first token {:>9.1f} ms\n"
      "{}"
      "cache       {:>6} bytes per token; decompressed MHA would need {} ({:.1f} times)\n"
      "attention   {} ({})\n",
      stats["prompt_tokens"].get<int64_t>(), stats["prompt_tokens_per_s"].get<double>(),
      stats["generated_tokens"].get<int64_t>(), stats["generated_tokens_per_s"].get<double>(),
      drafts, stats["time_to_first_token_s"].get<double>() * 1e3, disk_line, cache, expanded,
      static_cast<double>(expanded) / static_cast<double>(cache),
      stats["attention"].get<std::string>(), stats["dtype"].get<std::string>());
  Tell(Wrapped(lines, ColumnsOf(STDERR_FILENO)));
}

// Shows an answer while it is generated.
class AnswerView {
 public:
  // `echo`: printed before the text.
  AnswerView(Engine& engine, const Interrupts& interrupts, int64_t prompt_tokens,
             std::string_view echo, bool prints)
      : engine_(engine),
        interrupts_(interrupts),
        prompt_tokens_(prompt_tokens),
        echo_(echo),
        prints_(prints) {}

  // Bytes that were read from disk after the first token; nullopt if they are unknown.
  std::optional<int64_t> disk_bytes() const {
    const std::optional<int64_t> now = BytesReadFromDisk();
    return now && disk_at_first_ ? std::optional(*now - *disk_at_first_) : std::nullopt;
  }

  // Text is printed as soon as later tokens cannot change it.
  Result<Completion> Answer(Request request) {
    progress_.Show(0, prompt_tokens_);
    progress_.Tick();
    const LateInterrupt late(interrupts_, [this] {
      if (!began_) progress_.EndWith(std::string(kStopping));
    });
    LATTE_ASSIGN_OR_RETURN(Completion answer,
                           Complete(engine_, std::move(request), [&](const TokenEvent* event) {
                             if (event == nullptr)
                               ShowPrompt();
                             else if (event->token || !event->text.empty())
                               Show(event->text);
                             return printed_.has_value() && !interrupts_.TakeFirst();
                           }));
    // A prompt that was stopped is not echoed: it may be long, and no text follows it.
    if (answer.reason == FinishReason::kCancelled && answer.tokens.empty()) echo_ = {};
    Show({});
    LATTE_RETURN_IF_ERROR(printed_);
    if (prints_) LATTE_RETURN_IF_ERROR(printer_.Finish());
    return answer;
  }

 private:
  void ShowPrompt() { progress_.Show(engine_.Stats().computed_tokens, prompt_tokens_); }

  // The prompt is echoed when it is computed: its progress stands in the same place.
  void Show(std::string_view text) {
    if (!began_.exchange(true)) disk_at_first_ = BytesReadFromDisk();
    progress_.Clear();
    if (prints_ && printed_ && !echo_.empty()) printed_ = printer_.Add(std::exchange(echo_, {}));
    if (prints_ && printed_ && !text.empty()) printed_ = printer_.Add(text);
  }

  Engine& engine_;
  const Interrupts& interrupts_;
  int64_t prompt_tokens_;
  std::string_view echo_;
  bool prints_;
  Progress progress_{"prompt", "tokens"};
  std::atomic<bool> began_ = false;  // the text has
  std::optional<int64_t> disk_at_first_;
  AnswerPrinter printer_;
  Status printed_;
};

// Why the text ends, where that is not plain.
void NoteEnd(const Completion& answer, int64_t max_tokens) {
  const auto generated = static_cast<int64_t>(answer.tokens.size());
  if (answer.reason == FinishReason::kLength && generated < max_tokens)
    Tell(fmt::format("latte: note: the model's context is full after {} tokens of text\n",
                     generated));
}

Status PrintAnswer(const RunFlags& flags, const std::string& prompt, const Completion& answer,
                   const JsonOut& stats, const UsedSeed& seed) {
  if (flags.json) {
    JsonOut out = {{"model", flags.model},
                   {"prompt", prompt},
                   {"text", answer.text},
                   {"tokens", answer.tokens},
                   {"finish_reason", Name(answer.reason)},
                   {"seed", seed.value},
                   {"stats", stats}};
    return Print(Dump(out, 2) + "\n");
  }
  if (flags.stats) PrintStats(stats);
  SayDrawn(seed);
  return {};
}

// The fields of Request itself. Errors: also of CheckGrammar.
Result<Request> RunRequest(const RunFlags& flags) {
  Request out;
  LATTE_RETURN_IF_ERROR(flags.request.Apply(out));
  LATTE_RETURN_IF_ERROR(flags.request.Validate(out));
  if (!out.grammar.empty())
    LATTE_RETURN_IF_ERROR(
        flags.request.Named(CheckGrammar({*FindGrammarSyntax(out.grammar_syntax), out.grammar})));
  return out;
}

Status RunCommand(const RunFlags& flags) {
  UseUtf8();
  LATTE_ASSIGN_OR_RETURN(Request request, RunRequest(flags));
  LATTE_ASSIGN_OR_RETURN(const bool check_weights, flags.check_weights.Get());
  LATTE_ASSIGN_OR_RETURN(EngineOptions options, flags.engine.Options(flags.model));
  LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<RankWorld> ranks, JoinRanks(options));
  if (ranks && !ranks->leads()) return FollowLeader(*ranks);
  LATTE_ASSIGN_OR_RETURN(const OpenedModel opened,
                         OpenModel(flags.model, {.drafts = &options,
                                                 .check_weights = check_weights,
                                                 .device = options.device,
                                                 .ranks = ranks.get()}));
  const ModelConfig& config = opened.model->config();
  LATTE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, LoadTokenizer(opened.dir));
  LATTE_ASSIGN_OR_RETURN(const std::string prompt, PromptText(flags));
  LATTE_ASSIGN_OR_RETURN(request.stop, flags.Stop());
  LATTE_RETURN_IF_ERROR(SetTokens(flags, opened, tokenizer, prompt, &request));
  const auto prompt_tokens = static_cast<int64_t>(request.tokens.size());
  LATTE_ASSIGN_OR_RETURN(const int64_t longest,
                         LongestSequence(options.max_tokens, config.max_position));
  LATTE_ASSIGN_OR_RETURN(const int64_t context,
                         RunContext(prompt_tokens, request.stop.max_tokens, longest));
  LATTE_ASSIGN_OR_RETURN(const Settings settings,
                         ResolveOptionsForOne(options, config, opened.device.machine(), context,
                                              ShareOf(ranks.get())));
  WarnAboutRates(settings.rates_warning);
  WarnIfDense(config, settings.attention);
  LATTE_ASSIGN_OR_RETURN(const Interrupts interrupts, Interrupts::Catch({SIGINT, SIGTERM}));
  LATTE_ASSIGN_OR_RETURN(const auto core,
                         EngineCore::Create({.model = opened.model.get(),
                                             .machine = &opened.device.machine(),
                                             .tokenizer = &tokenizer,
                                             .host = &opened.device.host(),
                                             .followers = FollowersOf(ranks.get())},
                                            settings));
  WarnIfFewer(options.threads, core->settings().options.threads);
  LATTE_ASSIGN_OR_RETURN(request.sampling, flags.sampling.Params(opened));
  const UsedSeed seed = flags.sampling.Seed(request.sampling);
  const int64_t max_tokens = request.stop.max_tokens;
  AnswerView view(*core, interrupts, prompt_tokens,
                  flags.chat || flags.no_echo ? std::string_view() : prompt, !flags.json);
  LATTE_ASSIGN_OR_RETURN(const Completion answer, view.Answer(std::move(request)));
  LATTE_RETURN_IF_ERROR(
      PrintAnswer(flags, prompt, answer,
                  StatsJson(settings, config, prompt_tokens, answer, view.disk_bytes()), seed));
  NoteEnd(answer, max_tokens);
  if (answer.reason == FinishReason::kCancelled) return Fail(Code::kCancelled, "run: stopped");
  return {};
}

}  // namespace

Command AddRun(const FlagSet& app) {
  auto flags = std::make_shared<RunFlags>();
  const FlagSet sub = app.AddCommand("run", "Continue a prompt and stream the text");
  sub.Add("MODEL", flags->model, "model, also as -m MODEL (default: tiny)");
  const FlagSet prompt = sub.Group("Prompt");
  prompt.Add("-p,--prompt", flags->prompt, "the prompt (default: read from standard input)");
  prompt
      .Add("-f,--prompt-file", flags->prompt_file, "read the prompt from a file; -: standard input")
      .Value("FILE");
  const auto all = [](const Field&, std::string_view) { return true; };
  flags->stop.Add(sub, all);
  flags->sampling.Add(sub);
  flags->request.Add(sub, all);
  prompt.AddSwitch("--chat", flags->chat,
                   "the prompt is a message: apply the model's chat template");
  const FlagSet output = sub.Group("Output");
  output.AddSwitch("--no-echo", flags->no_echo, "print the answer without the prompt before it");
  output.AddSwitch("--json", flags->json, "one JSON object instead of text");
  output.AddSwitch("--stats", flags->stats, "print speeds and cache sizes at the end");
  flags->check_weights.Add(sub);
  flags->engine.AddForOneSequence(sub, {.context = true, .drafts = true, .ranks = true});
  return {sub, [flags] { return RunCommand(*flags); }};
}

}  // namespace latte

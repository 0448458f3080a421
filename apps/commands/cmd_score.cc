// latte score: log-probabilities of a given sequence.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <functional>

#include <fmt/format.h>

#include "apps/flags/command.h"
#include "apps/flags/engine_flags.h"
#include "apps/ranks.h"
#include "apps/terminal/interrupts.h"
#include "apps/terminal/progress.h"
#include "src/base/json_out.h"
#include "src/checkpoint/model_files.h"
#include "src/jobs/npy.h"
#include "src/jobs/score.h"

namespace latte {
namespace {

struct ScoreFlags {
  std::string model = "tiny";
  std::optional<std::string> ids;
  std::optional<std::string> ids_file;
  std::optional<std::string> text;
  std::optional<std::string> text_file;
  std::optional<int64_t> context;
  std::optional<std::string> logits;
  bool json = false;
  CheckWeightsFlag check_weights;
  EngineFlags engine;
};

// The window of a text file unless --context says another: attention to more tokens takes long.
constexpr int64_t kDefaultWindow = 4096;

Status CheckScoreSource(const ScoreFlags& flags) {
  const int given = (flags.ids ? 1 : 0) + (flags.ids_file ? 1 : 0) + (flags.text ? 1 : 0) +
                    (flags.text_file ? 1 : 0);
  if (given != 1)
    return InvalidArgument(fmt::format(
        "expected exactly one of --ids, --ids-file, --text and --text-file, found {}", given));
  if (flags.context && !flags.text_file)
    return InvalidArgument("--context is the window of --text-file: expected a text file");
  if (flags.logits && flags.text_file)
    return InvalidArgument(
        "--logits writes the logits of one sequence: expected --ids, --ids-file or --text, found "
        "--text-file");
  return {};
}

// A sequence that is scored, and in windows if it is a text file.
struct ScoreInput {
  std::vector<int32_t> ids;
  std::optional<int32_t> start;  // of each window
};

Result<ScoreInput> ScoreTokens(const ScoreFlags& flags, const std::string& dir) {
  if (flags.ids || flags.ids_file) {
    std::string text = flags.ids.value_or("");
    if (flags.ids_file) {
      LATTE_ASSIGN_OR_RETURN(text, ReadText(*flags.ids_file));
    }
    LATTE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, ParseIds(text));
    return ScoreInput{std::move(ids), {}};
  }
  LATTE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, LoadTokenizer(dir));
  if (flags.text_file) {
    LATTE_ASSIGN_OR_RETURN(const std::string text, ReadText(*flags.text_file));
    LATTE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer.Encode(text, {}));
    if (ids.empty())
      return InvalidArgument(
          fmt::format("--text-file {}: expected a text, found nothing", *flags.text_file));
    return ScoreInput{std::move(ids), tokenizer.adds_bos() ? tokenizer.bos_id() : std::nullopt};
  }
  std::string text = *flags.text;
  if (text == "-") {
    LATTE_ASSIGN_OR_RETURN(text, ReadText("-"));
    if (text.ends_with('\n')) text.pop_back();  // the end of the last line
  }
  LATTE_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                         tokenizer.Encode(text, {.add_bos = tokenizer.adds_bos()}));
  return ScoreInput{std::move(ids), {}};
}

// The tokens of the longest sequence. Errors: kInvalidArgument if they are too many.
Result<int64_t> LongestSequence(const ScoreFlags& flags, const ScoreInput& input,
                                int64_t model_context) {
  const auto count = std::ssize(input.ids);
  if (!flags.text_file) {
    if (count <= model_context) return std::max<int64_t>(1, count);
    return InvalidArgument(
        fmt::format("{} tokens are given, but the model's context is {}; --text-file FILE scores a "
                    "longer text in windows",
                    count, model_context));
  }
  const int64_t window = flags.context.value_or(std::min(kDefaultWindow, model_context));
  if (window < 2 || window > model_context)
    return InvalidArgument(
        fmt::format("--context: expected 2 to {} tokens, found {}", model_context, window));
  return window;
}

Status PrintWindows(const ScoreFlags& flags, const ScoreInput& input, int64_t window,
                    const WindowedScore& result) {
  const double perplexity =
      std::exp(-result.total / static_cast<double>(std::max<int64_t>(result.scored, 1)));
  if (flags.json)
    return Print(Dump(JsonOut{{"model", flags.model},
                              {"token_count", input.ids.size()},
                              {"window", window},
                              {"windows", result.windows},
                              {"scored_tokens", result.scored},
                              {"total_logprob", result.total},
                              {"perplexity", perplexity}}) +
                 "\n");
  return Print(fmt::format(
      "{} tokens in {} window{} of up to {}, {} scored\ntotal {:.6f}, perplexity {:.4f}\n",
      input.ids.size(), result.windows, result.windows == 1 ? "" : "s", window, result.scored,
      result.total, perplexity));
}

Status PrintResult(const ScoreFlags& flags, std::span<const int32_t> ids,
                   const ScoreResult& result) {
  const double mean =
      result.logprobs.empty() ? 0 : result.total / static_cast<double>(result.logprobs.size());
  if (flags.json) {
    JsonOut logprobs = JsonOut::array({nullptr});  // no token precedes the first one
    for (const double p : result.logprobs) logprobs.push_back(p);
    const JsonOut out = {{"model", flags.model},
                         {"tokens", ids},
                         {"logprobs", logprobs},
                         {"total_logprob", result.total},
                         {"perplexity", std::exp(-mean)}};
    return Print(Dump(out) + "\n");
  }
  std::string out = fmt::format("{:>8} {:>8} {:>12}\n", "position", "token", "logprob");
  for (size_t i = 0; i < ids.size(); ++i)
    out += i == 0 ? fmt::format("{:>8} {:>8} {:>12}\n", i, ids[i], "-")
                  : fmt::format("{:>8} {:>8} {:>12.6f}\n", i, ids[i], result.logprobs[i - 1]);
  out += fmt::format("total {:.6f}, perplexity {:.4f}\n", result.total, std::exp(-mean));
  return Print(out);
}

Status ScoreCommand(const ScoreFlags& flags) {
  LATTE_RETURN_IF_ERROR(CheckScoreSource(flags));
  if (flags.logits) LATTE_RETURN_IF_ERROR(MayReplace(*flags.logits, NpyMatrix()));
  LATTE_ASSIGN_OR_RETURN(const bool check_weights, flags.check_weights.Get());
  LATTE_ASSIGN_OR_RETURN(EngineOptions options, flags.engine.Options(flags.model));
  LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<RankWorld> ranks, JoinRanks(options));
  if (ranks && !ranks->leads()) return FollowLeader(*ranks);
  LATTE_ASSIGN_OR_RETURN(
      const OpenedModel opened,
      OpenModel(flags.model,
                {.check_weights = check_weights, .device = options.device, .ranks = ranks.get()}));
  LATTE_ASSIGN_OR_RETURN(const ScoreInput input, ScoreTokens(flags, opened.dir));
  const ModelConfig& config = opened.model->config();
  LATTE_ASSIGN_OR_RETURN(const int64_t longest, LongestSequence(flags, input, config.max_position));
  LATTE_ASSIGN_OR_RETURN(const Settings settings,
                         ResolveOptionsForOne(options, config, opened.device.machine(), longest,
                                              ShareOf(ranks.get())));
  WarnAboutRates(settings.rates_warning);
  WarnIfDense(config, settings.attention);
  // Needed only with an output file, which is removed on interruption.
  Interrupts interrupts;
  if (flags.logits) {
    LATTE_ASSIGN_OR_RETURN(interrupts, Interrupts::Catch({SIGINT, SIGTERM, SIGHUP}));
  }
  LATTE_ASSIGN_OR_RETURN(const auto sequence,
                         GivenSequence::Create(*opened.model, opened.device.machine(), settings,
                                               FollowersOf(ranks.get())));
  WarnIfFewer(options.threads, sequence->threads());
  Progress shown("scored", "tokens");
  shown.Tick();
  const auto stop = [&] { return interrupts.TakeFirst(); };
  const JobProgress progress = std::bind_front(&Progress::Show, &shown);
  if (flags.text_file) {
    LATTE_ASSIGN_OR_RETURN(
        const WindowedScore result,
        ScoreWindows(*sequence, input.ids, input.start, longest, config.vocab, stop, progress));
    shown.End();
    interrupts.Release();
    return PrintWindows(flags, input, longest, result);
  }
  LATTE_ASSIGN_OR_RETURN(const ScoreResult result,
                         Score(*sequence, input.ids, config.vocab, flags.logits, stop, progress));
  shown.End();
  interrupts.Release();
  return PrintResult(flags, input.ids, result);
}

}  // namespace

Command AddScore(const FlagSet& app) {
  auto flags = std::make_shared<ScoreFlags>();
  const FlagSet sub = app.AddCommand("score", "Log-probabilities of a text or of token ids");
  sub.Add("MODEL", flags->model, "model, also as -m MODEL (default: tiny)");
  sub.Add("--ids", flags->ids, "token ids: 1,2,3");
  sub.Add("--ids-file", flags->ids_file, "token ids from a file; -: from standard input")
      .Value("FILE");
  sub.Add("-p,--text", flags->text,
          "a text, after the model's start token; -: from standard input");
  sub.Add(
         "-f,--text-file", flags->text_file,
         "the text of a file of any length, in windows of --context tokens; -: from standard input")
      .Value("FILE");
  sub.Add("--context", flags->context,
          "tokens of a window of --text-file (default: 4096, or the model's context if shorter)");
  sub.Add("--logits", flags->logits,
          "also write the logits to a .npy file, float32 [T, vocab]; replaces only such a file")
      .Value("FILE");
  sub.Group("Output").AddSwitch("--json", flags->json, "one JSON object instead of a table");
  flags->check_weights.Add(sub);
  flags->engine.AddForOneSequence(sub, {.ranks = true});
  return {sub, [flags] { return ScoreCommand(*flags); }};
}

}  // namespace latte

// latte score: log-probabilities of a given sequence.
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
#include "src/jobs/npy.h"
#include "src/jobs/score.h"

namespace latte {
namespace {

struct ScoreFlags {
  std::string model = "tiny";
  std::optional<std::string> ids;
  std::optional<std::string> ids_file;
  std::optional<std::string> text;
  std::optional<std::string> logits;
  bool json = false;
  CheckWeightsFlag check_weights;
  EngineFlags engine;
};

Result<std::vector<int32_t>> Tokens(const ScoreFlags& flags, const std::string& dir) {
  const int given = (flags.ids ? 1 : 0) + (flags.ids_file ? 1 : 0) + (flags.text ? 1 : 0);
  if (given != 1)
    return InvalidArgument(
        fmt::format("expected exactly one of --ids, --ids-file and --text, found {}", given));
  if (flags.ids) return ParseIds(*flags.ids);
  if (flags.ids_file) {
    LATTE_ASSIGN_OR_RETURN(const std::string text, ReadText(*flags.ids_file));
    return ParseIds(text);
  }
  LATTE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(dir));
  std::string text = *flags.text;
  if (text == "-") {
    LATTE_ASSIGN_OR_RETURN(text, ReadText("-"));
    if (text.ends_with('\n')) text.pop_back();  // the end of the last line
  }
  return tokenizer.Encode(text, {.add_bos = tokenizer.adds_bos()});
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
  if (flags.logits) LATTE_RETURN_IF_ERROR(MayReplace(*flags.logits, NpyMatrix()));
  LATTE_ASSIGN_OR_RETURN(const bool check_weights, flags.check_weights.Get());
  LATTE_ASSIGN_OR_RETURN(EngineOptions options, flags.engine.Options(flags.model));
  LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<RankGroup> ranks, JoinRanks(options));
  if (ranks && !ranks->leads()) return FollowLeader(*ranks);
  LATTE_ASSIGN_OR_RETURN(
      const OpenedModel opened,
      OpenModel(flags.model, {.check_weights = check_weights, .ranks = ranks.get()}));
  LATTE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, Tokens(flags, opened.dir));
  const ModelConfig& config = opened.model->config();
  if (static_cast<int64_t>(ids.size()) > config.max_position)
    return InvalidArgument(fmt::format("{} tokens are given, but the model's context is {}",
                                       ids.size(), config.max_position));
  LATTE_ASSIGN_OR_RETURN(
      const Settings settings,
      ResolveOptionsForOne(options, config, opened.machine,
                           std::max<int64_t>(1, static_cast<int64_t>(ids.size())),
                           ShareOf(ranks.get())));
  WarnAboutRates(settings.rates_warning);
  WarnIfDense(config, settings.attention);
  // Needed only with an output file, which is removed on interruption.
  Interrupts interrupts;
  if (flags.logits) {
    LATTE_ASSIGN_OR_RETURN(interrupts, Interrupts::Catch({SIGINT, SIGTERM, SIGHUP}));
  }
  LATTE_ASSIGN_OR_RETURN(
      const auto sequence,
      GivenSequence::Create(*opened.model, opened.machine, settings, FollowersOf(ranks.get())));
  WarnIfFewer(options.threads, sequence->threads());
  Progress shown("scored", "tokens");
  shown.Tick();
  LATTE_ASSIGN_OR_RETURN(const ScoreResult result, Score(
                                                       *sequence, ids, config.vocab, flags.logits,
                                                       [&] { return interrupts.TakeFirst(); },
                                                       std::bind_front(&Progress::Show, &shown)));
  shown.End();
  interrupts.Release();
  return PrintResult(flags, ids, result);
}

}  // namespace

Command AddScore(const FlagSet& app) {
  auto flags = std::make_shared<ScoreFlags>();
  const FlagSet sub = app.AddCommand("score", "Log-probabilities of a text or of token ids");
  sub.Add("MODEL", flags->model, "model, also as -m MODEL (default: tiny)");
  sub.Add("--ids", flags->ids, "token ids: 1,2,3");
  sub.Add("--ids-file", flags->ids_file, "token ids from a file; -: from standard input")
      .Value("FILE");
  sub.Add("--text", flags->text, "a text, after the model's start token; -: from standard input");
  sub.Add("--logits", flags->logits,
          "also write the logits to a .npy file, float32 [T, vocab]; replaces only such a file")
      .Value("FILE");
  sub.Group("Output").AddSwitch("--json", flags->json, "one JSON object instead of a table");
  flags->check_weights.Add(sub);
  flags->engine.AddForOneSequence(sub, {.ranks = true});
  return {sub, [flags] { return ScoreCommand(*flags); }};
}

}  // namespace latte

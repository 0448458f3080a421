#include "apps/flags/command.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include <fmt/format.h>

#include "apps/terminal/progress.h"
#include "src/base/file.h"
#include "src/base/limits/memory.h"
#include "src/base/limits/processors.h"
#include "src/checkpoint/check_weights.h"
#include "src/checkpoint/config/generation_config.h"
#include "src/checkpoint/model_path.h"
#include "src/checkpoint/weight_memory.h"
#include "src/layers/mla/calibration.h"
#include "src/models/registry.h"

namespace latte {

void WarnAboutRates(Isa isa) {
  const std::string warning = MachineRates(isa).warning;
  if (!warning.empty()) std::fprintf(stderr, "latte: warning: %s\n", warning.c_str());
}

Result<bool> Int8Activations(const std::string& act) {
  if (act != "int8" && act != "bf16")
    return InvalidArgument(fmt::format("--act: expected int8 or bf16, found '{}'", act));
  return act == "int8";
}

Status SetMemoryPolicy(const std::string& numa) {
  if (numa != "first-touch" && numa != "interleave")
    return InvalidArgument(
        fmt::format("--numa: expected first-touch or interleave, found '{}'", numa));
  if (numa == "interleave" && !InterleaveMemory())
    return Fail(Code::kUnavailable,
                "--numa interleave: the system does not let this process set its memory policy "
                "(set_mempolicy); run without the flag");
  return {};
}

void SamplingFlags::Add(const FlagSet& app) {
  app.Add("--temperature", temperature,
          "0: always the likeliest token (default: the checkpoint's generation_config.json)");
  app.Add("--top-k", top_k,
          "draw among the K likeliest tokens; 0: all (default: generation_config.json)");
  app.Add(
      "--top-p", top_p,
      "draw among the likeliest tokens that reach P together (default: generation_config.json)");
  app.Add("--min-p", min_p,
          "drop tokens below P times the likeliest one (default: generation_config.json)");
  app.Add("--repetition-penalty", repetition_penalty,
          "divide positive logits of tokens that the text has by it, multiply negative ones "
          "(default: generation_config.json, else 1: off)");
  app.Add("--presence-penalty", presence_penalty,
          "take it off the logits of tokens that the answer has (default: 0)");
  app.Add("--frequency-penalty", frequency_penalty,
          "the same, once for each time the answer has them (default: 0)");
  app.Add("--logit-bias", logit_bias,
          "ID:VALUE,…: add to the logits of tokens, -100 (never) to 100 (always)");
  app.Add("--seed", seed, "same seed, same text (default: 0)");
}

Result<SamplingParams> SamplingFlags::Params(const OpenedModel& opened) const {
  LATTE_ASSIGN_OR_RETURN(const GenerationDefaults defaults, LoadGenerationDefaults(opened.dir));
  SamplingParams out;
  defaults.ApplyTo(&out);
  out.temperature = temperature.value_or(out.temperature);
  out.top_k = top_k.value_or(out.top_k);
  out.top_p = top_p.value_or(out.top_p);
  out.min_p = min_p.value_or(out.min_p);
  out.seed = seed;
  out.repetition_penalty = repetition_penalty.value_or(out.repetition_penalty);
  out.presence_penalty = presence_penalty;
  out.frequency_penalty = frequency_penalty;
  LATTE_ASSIGN_OR_RETURN(out.logit_bias, ParseLogitBias(logit_bias));
  LATTE_RETURN_IF_ERROR(NameFlag(out.Validate()));
  const int64_t vocab = opened.model->config().vocab;
  for (const auto& [token, bias] : out.logit_bias)
    if (token >= vocab)
      return InvalidArgument(fmt::format(
          "--logit-bias: expected tokens of the vocabulary, 0 to {}, found {}", vocab - 1, token));
  return out;
}

void AddCheckWeights(const FlagSet& app, bool& check_weights) {
  app.AddSwitch("--check-weights", check_weights,
                "first look through all weights for NaN and infinity");
}

namespace {

void Warn(const ModelConfig& config, const Checkpoint& checkpoint) {
  const auto warning = LargerThanMemory(config, WeightMemory(checkpoint), AvailableMemory());
  if (warning) std::fprintf(stderr, "latte: warning: %s\n", warning->c_str());
}

}  // namespace

void WarnIfFewer(int asked, int started) {
  const int wanted = asked > 0 ? asked : DefaultThreads();
  if (started < wanted)
    std::fprintf(stderr,
                 "latte: warning: %d of %d threads could be started; the process, its user or its "
                 "control group may have no more (ulimit -u, ulimit -v, pids.max)\n",
                 started, wanted);
}

void WarnIfLarge(const std::string& dir, const ModelConfig& config) {
  const Result<Checkpoint> checkpoint = Checkpoint::Open(dir);
  if (checkpoint) Warn(config, *checkpoint);
}

Result<OpenedModel> OpenModel(const std::string& name, const OpenOptions& options) {
  OpenedModel out;
  LATTE_ASSIGN_OR_RETURN(out.dir, ResolveModelPath(name));
  LATTE_ASSIGN_OR_RETURN(out.machine, Machine::Detect());
  LATTE_ASSIGN_OR_RETURN(const ModelConfig config, LoadModelConfig(out.dir));
  LATTE_ASSIGN_OR_RETURN(Checkpoint mapped, Checkpoint::Open(out.dir));
  Warn(config, mapped);
  LATTE_ASSIGN_OR_RETURN(out.model, LoadModel(out.dir, config, std::move(mapped),
                                              {.mtp = options.mtp && config.mtp_layers > 0,
                                               .repacked = LayerProgress("repacking weights")}));
  if (options.check_weights) {
    LATTE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(out.dir));
    LATTE_RETURN_IF_ERROR(CheckWeights(checkpoint));
  }
  for (const std::string& caveat : UnusedFeatures(out.model->config()))
    std::fprintf(stderr, "latte: warning: %s\n", caveat.c_str());
  return out;
}

Result<std::string> ReadText(const std::string& path) {
  constexpr int64_t kMaxBytes = int64_t{1} << 30;
  if (path != "-") return ReadFile(path, kMaxBytes);
  std::string out;
  char buffer[1 << 16];
  while (const size_t n = std::fread(buffer, 1, sizeof(buffer), stdin)) {
    out.append(buffer, n);
    if (static_cast<int64_t>(out.size()) > kMaxBytes)
      return Corrupt(
          fmt::format("standard input: expected at most {} bytes, found more", kMaxBytes));
  }
  return out;
}

Result<std::vector<int32_t>> ParseIds(const std::string& text) {
  std::vector<int32_t> ids;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto separator = [](char c) {
    return c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
  };
  while (true) {
    while (at != end && separator(*at)) ++at;
    if (at == end) return ids;
    int32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || (next != end && !separator(*next))) {
      const char* stop = std::find_if(at, end, separator);
      return InvalidArgument(
          fmt::format("token ids: expected numbers separated by commas, found '{}'",
                      std::string_view(at, static_cast<size_t>(stop - at))));
    }
    ids.push_back(id);
    at = next;
  }
}

Result<std::vector<std::pair<int32_t, float>>> ParseLogitBias(std::string_view text) {
  std::vector<std::pair<int32_t, float>> out;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), piece.size() + 1));
    const size_t colon = std::min(piece.find(':'), piece.size());
    const char* const end = piece.data() + piece.size();
    std::pair<int32_t, float> bias;
    const auto id = std::from_chars(piece.data(), piece.data() + colon, bias.first);
    const bool named = id.ec == std::errc() && id.ptr == piece.data() + colon && id.ptr != end;
    const auto value = named ? std::from_chars(id.ptr + 1, end, bias.second)
                             : std::from_chars_result{nullptr, std::errc::invalid_argument};
    if (value.ec != std::errc() || value.ptr != end)
      return InvalidArgument(fmt::format(
          "--logit-bias: expected ID:VALUE pairs separated by commas, found '{}'", piece));
    out.push_back(bias);
  }
  return out;
}

Status NameFlag(Status status) {
  if (status) return status;
  std::string message = "--" + status.error().message;
  std::replace(message.begin(), message.begin() + static_cast<int64_t>(message.find(':')), '_',
               '-');
  return Fail(status.error().code, std::move(message));
}

double PerSecond(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
}

Status Print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return Fail(Code::kUnavailable, "standard output: cannot be written");
  return {};
}

}  // namespace latte

#include "apps/flags/command.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "apps/flags/seed.h"
#include "apps/flags/values/value_text.h"
#include "apps/terminal/progress.h"
#include "src/base/file.h"
#include "src/base/json_out.h"
#include "src/base/limits/memory.h"
#include "src/base/limits/processors.h"
#include "src/checkpoint/check_weights.h"
#include "src/checkpoint/config/generation_config.h"
#include "src/checkpoint/model_path.h"
#include "src/checkpoint/weight_memory.h"
#include "src/engine/settings.h"
#include "src/models/registry.h"

namespace latte {

void WarnAboutRates(const std::string& warning) {
  if (!warning.empty()) Warn(warning);
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
  flags_.Add(app, [](const Field&, std::string_view) { return true; });
}

Result<SamplingParams> SamplingFlags::Params(const OpenedModel& opened) const {
  LATTE_ASSIGN_OR_RETURN(const GenerationDefaults defaults, LoadGenerationDefaults(opened.dir));
  SamplingParams out;
  out.seed = DrawSeed();
  defaults.ApplyTo(&out);
  LATTE_RETURN_IF_ERROR(flags_.Apply(out));
  LATTE_RETURN_IF_ERROR(flags_.Validate(out));
  const int64_t vocab = opened.model->config().vocab;
  for (const auto& [token, bias] : out.logit_bias)
    if (token >= vocab)
      return InvalidArgument(fmt::format(
          "--logit-bias: expected tokens of the vocabulary, 0 to {}, found {}", vocab - 1, token));
  return out;
}

Status SamplingFlags::ApplyTo(SamplingParams* params,
                              std::set<std::string, std::less<>>* chosen) const {
  LATTE_RETURN_IF_ERROR(flags_.Apply(*params));
  return flags_.ForEachSet([&](const Field& field, const auto&) { chosen->emplace(field.name); });
}

UsedSeed SamplingFlags::Seed(const SamplingParams& params) const {
  return {.value = params.seed,
          .drawn = flags_.SourceOf(FieldOf<SamplingParams>("seed"), {}).empty(),
          .used = params.temperature > 0};
}

void SayDrawn(const UsedSeed& seed) {
  if (seed.drawn && seed.used) TellLine(fmt::format("seed {}", seed.value));
}

void AddThreads(const FlagSet& app, int& threads, int preset) {
  const auto parse = [&threads](const std::string& text) -> Status {
    int64_t asked = 0;
    if (!ReadAsFlag(text, false, asked) || asked < 0 || asked > 1024)
      return InvalidArgument(
          fmt::format("--threads: expected a number in [0, 1024], found {}", text));
    threads = asked == 0 ? DefaultThreads() : static_cast<int>(asked);
    return {};
  };
  threads = preset == 0 ? DefaultThreads() : preset;
  app.Group("Computation")
      .AddParsed("-t,--threads", parse,
                 fmt::format("threads; 0: one per CPU, within the container's quota (default: {})",
                             preset))
      .Value("N");
}

void CheckWeightsFlag::Add(const FlagSet& app) {
  flags_.Add(app, [](const Field& f, std::string_view) { return f.name == "check_weights"; });
}

Result<bool> CheckWeightsFlag::Get() const {
  EngineOptions out;
  LATTE_RETURN_IF_ERROR(flags_.Apply(out));
  return out.check_weights;
}

namespace {

void WarnIfTooLarge(const ModelConfig& config, const MemoryRoom& room) {
  const auto warning = LargerThanMemory(config, room.weight_bytes, room.available_bytes);
  if (warning) Warn(*warning);
}

}  // namespace

void WarnIfFewer(int asked, int started) {
  const int wanted = asked > 0 ? asked : DefaultThreads();
  if (started < wanted)
    Warn(
        fmt::format("{} of {} threads could be started; the process, its user or its "
                    "control group may have no more (ulimit -u, ulimit -v, pids.max)",
                    started, wanted));
}

void WarnIfLarge(const std::string& dir, const ModelConfig& config) {
  const Result<Checkpoint> checkpoint = Checkpoint::Open(dir);
  if (checkpoint)
    WarnIfTooLarge(config, {MemoryForWeights(config, *checkpoint), WeightMemory(*checkpoint)});
}

Result<OpenedModel> OpenModel(const std::string& name, const OpenOptions& options) {
  OpenedModel out;
  LATTE_ASSIGN_OR_RETURN(out.dir, ResolveModelPath(name));
  LATTE_ASSIGN_OR_RETURN(out.device, ComputeDevice::Open(options.device));
  if (out.device.is_gpu() && options.ranks != nullptr)
    return Unsupported("--device cuda: expected one process, found --tp or --dp");
  LATTE_ASSIGN_OR_RETURN(const ModelConfig config, LoadModelConfig(out.dir));
  LATTE_ASSIGN_OR_RETURN(Checkpoint mapped, Checkpoint::Open(out.dir));
  const EngineOptions* const drafts = options.drafts;
  out.room = out.device.RoomFor(config, &mapped,
                                drafts == nullptr ? EngineOptions{.draft_tokens = "0"} : *drafts);
  LATTE_RETURN_IF_ERROR(CheckWeightsFit(config, out.room));
  if (!out.device.is_gpu()) WarnIfTooLarge(config, out.room);
  ModelOptions wanted;
  wanted.device = &out.device.device();
  wanted.mtp = drafts != nullptr && NeedsMtp(*drafts, config);
  wanted.larger_than_memory = out.room.exceeds_memory();
  wanted.mtp_optional = drafts != nullptr && drafts->draft_tokens == "auto";
  ProgressOfLoading shown;
  const LoadingHooks hooks = shown.Hooks();
  wanted.repacked = hooks.repacked;
  RankWorld* const ranks = options.ranks;
  if (ranks != nullptr) LATTE_RETURN_IF_ERROR(ranks->AnnounceModel(name, wanted));
  Result<std::unique_ptr<Model>> loaded = LoadModel(out.dir, config, std::move(mapped), wanted);
  if (ranks != nullptr) loaded = ranks->Share(std::move(loaded));
  LATTE_ASSIGN_OR_RETURN(out.model, std::move(loaded));
  if (options.check_weights) {
    LATTE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(out.dir));
    LATTE_RETURN_IF_ERROR(CheckWeights(checkpoint, hooks.checked));
  }
  shown.End();
  for (const std::string& caveat : UnusedFeatures(out.model->config())) Warn(caveat);
  if (!out.model->drafts_left_out().empty()) Warn(out.model->drafts_left_out());
  return out;
}

namespace {

constexpr int64_t kMaxTextBytes = int64_t{1} << 30;

// Everything up to the end of a stream, which may be a pipe.
Result<std::string> ReadStream(std::FILE* stream, const std::string& name) {
  std::string out;
  char buffer[1 << 16];
  while (const size_t n = std::fread(buffer, 1, sizeof(buffer), stream)) {
    out.append(buffer, n);
    if (static_cast<int64_t>(out.size()) > kMaxTextBytes)
      return Corrupt(fmt::format("{}: expected at most {} bytes, found more", name, kMaxTextBytes));
    if (std::feof(stream) != 0)
      break;  // after Ctrl-D, another read would wait for a terminal again
  }
  if (std::ferror(stream) != 0)
    return Fail(Code::kUnavailable, fmt::format("{}: cannot be read", name));
  return out;
}

}  // namespace

Result<std::string> ReadText(const std::string& path) {
  if (path == "-") return ReadStream(stdin, "standard input");
  std::error_code ignored;  // ReadFile reports it
  const std::filesystem::file_type type = std::filesystem::status(path, ignored).type();
  if (type != std::filesystem::file_type::fifo && type != std::filesystem::file_type::character)
    return ReadFile(path, kMaxTextBytes);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             std::fclose);
  if (!file) return Fail(Code::kUnavailable, fmt::format("{}: cannot be opened", path));
  return ReadStream(file.get(), path);
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

double PerSecond(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
}

}  // namespace latte

// latte quantize: writes a smaller copy of a checkpoint.
#include <csignal>
#include <functional>

#include <fmt/format.h>

#include "apps/flags/command.h"
#include "apps/terminal/interrupts.h"
#include "apps/terminal/progress.h"
#include "src/base/json_out.h"
#include "src/base/one_of.h"
#include "src/checkpoint/model_path.h"
#include "src/jobs/convert/quantize.h"

namespace latte {
namespace {

struct QuantizeFlags {
  std::string model;
  std::string out;
  std::string to;
  int64_t group = 32;
  int threads = 0;
  bool force = false;
  bool json = false;
};

std::string QuantizeSummary(const QuantizeFlags& flags, const QuantizeReport& report) {
  std::string out = fmt::format(
      "{}: {} matrices in {}, {} tensors unchanged, {:.3f} GB of {:.3f} GB\n"
      "relative error of a matrix: mean {:.5f}, largest {:.5f} ({})\n{}",
      flags.out, report.quantized, flags.to, report.kept,
      static_cast<double>(report.bytes_after) / 1e9, static_cast<double>(report.bytes_before) / 1e9,
      report.errors.mean(), report.errors.worst().largest, report.errors.worst().worst,
      QuantErrorsText(report.errors));
  if (!report.not_divisible.empty())
    out += fmt::format(
        "{} matrices were kept, because their rows do not divide into groups of {}: {}, …\n",
        report.not_divisible.size(), flags.group, report.not_divisible.front());
  return out;
}

// "fp8 (blocks of 128x128), int8 (a scale per row) or …"
std::string FormatsText() {
  std::vector<std::string> texts;
  for (const WeightFormat* format : WrittenFormats())
    texts.push_back(fmt::format("{} ({})", format->encoder->name, format->encoder->summary));
  return OneOf(std::vector<std::string_view>(texts.begin(), texts.end()));
}

Status QuantizeCommand(const QuantizeFlags& flags) {
  LATTE_ASSIGN_OR_RETURN(const QuantScheme scheme, ParseQuantScheme(flags.to, flags.group));
  LATTE_ASSIGN_OR_RETURN(const std::string dir, ResolveModelPath(flags.model));
  // Must precede the start of threads, so that this thread receives the signals.
  LATTE_ASSIGN_OR_RETURN(const Interrupts interrupts, Interrupts::Catch({SIGINT, SIGTERM, SIGHUP}));
  ThreadPool threads(flags.threads);
  QuantizeOptions options = {.force = flags.force};
  options.interrupted = [&] { return interrupts.TakeFirst(); };
  Progress shown("written");
  options.progress = std::bind_front(&Progress::Show, &shown);
  LATTE_ASSIGN_OR_RETURN(const QuantizeReport report,
                         QuantizeCheckpoint(dir, flags.out, scheme, threads, options));
  interrupts.Release();
  ShowNotes(report.notes);
  if (!flags.json) return Print(QuantizeSummary(flags, report));
  JsonOut out = {{"model", flags.model}, {"out", flags.out}, {"to", flags.to}};
  if (scheme.format->encoder->grouped) out["group"] = scheme.block_columns;
  out.update(ReportJson(report));
  return Print(Dump(out) + "\n");
}

}  // namespace

Command AddQuantize(const FlagSet& app) {
  auto flags = std::make_shared<QuantizeFlags>();
  const FlagSet sub = app.AddCommand("quantize", "A smaller copy of a checkpoint");
  sub.Add("MODEL", flags->model, "model in BF16, F16, F32 or block-scaled FP8").Required();
  sub.Add("OUT", flags->out, "folder to write").Required().Value("FOLDER");
  sub.Add("--to", flags->to, FormatsText()).Required();
  sub.Add("--group", flags->group, "weights per scale of int4: 32 or 128 (default: 32)");
  AddThreads(sub, flags->threads, 0);
  sub.AddSwitch("--force", flags->force,
                "replace the checkpoint in OUT; refused if OUT holds anything else");
  sub.Group("Output").AddSwitch("--json", flags->json, "one JSON object instead of text");
  return {sub, [flags] { return QuantizeCommand(*flags); }};
}

}  // namespace latte

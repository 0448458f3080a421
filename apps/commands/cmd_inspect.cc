// latte inspect: the shape of a model, its size, its cache size, and the kernels that would run it.
#include <fmt/format.h>

#include "apps/commands/inspect_summary.h"
#include "apps/flags/command.h"
#include "apps/flags/manual/cli_document.h"
#include "apps/flags/manual/limits_document.h"
#include "apps/flags/manual/options_document.h"
#include "apps/terminal/progress.h"
#include "src/base/json_out.h"
#include "src/base/limits/memory.h"
#include "src/checkpoint/check_weights.h"
#include "src/checkpoint/model_path.h"
#include "src/jobs/inspect.h"
#include "src/kernels/kernel_text.h"

namespace latte {
namespace {

struct InspectFlags {
  FlagSet program;
  std::string model = "tiny";
  bool kernels = false;
  bool options = false;
  bool limits = false;
  bool commands = false;
  bool json = false;
  StructFlags<EngineOptions> engine;  // --check-weights, --device
  bool path = false;
  PromptShape prompt{1, 4096};
};

// fmt counts the width of UTF-8 text in columns, as a terminal does.
std::string RenderKernels(const JsonOut& rows) {
  std::string out = fmt::format(
      "\nkernels (* decodes a token of this model)\n{}    {:<17} {:<36} {:<12} {:<16} {}\n",
      kKernelTextLegend, "op", "name", "block", "order of sums", "types; when");
  for (const JsonOut& row : rows) {
    const auto text = [&](const char* key) { return row[key].get<std::string>(); };
    const std::string types = text("types");
    const std::string when = text("when");
    std::string line =
        fmt::format("  {} {:<17} {:<36} {:<12} {:<16} {}{}{}",
                    row["chosen"].get<bool>() ? "*" : " ", text("op"), text("name"), text("block"),
                    text("order"), types, types.empty() || when.empty() ? "" : "; ", when);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string RenderSelection(const JsonOut& processor, const JsonOut& rows) {
  std::string out =
      fmt::format("\nwhat serves which shape here ({}, micro-architecture {})\n",
                  processor["isa"].get<std::string>(), processor["uarch"].get<std::string>());
  for (const JsonOut& row : rows)
    out += fmt::format("    {:<11} {:<46} {}\n", row["op"].get<std::string>(),
                       row["shape"].get<std::string>(), row["kernel"].get<std::string>());
  return out;
}

// The table of costs that decides the attention path.
std::string RenderPath(const JsonOut& table) {
  const auto sparse = table["sparse_tokens"].get<int64_t>();
  std::string out = fmt::format(
      "\nattention of {} new tokens after {} cached ones{}, {} layers\n  {:<10} {:>14} "
      "{:>12} {:>12} {:>12}\n",
      table["new_tokens"].get<int64_t>(), table["cached_tokens"].get<int64_t>(),
      sparse > 0 ? fmt::format(" (the last {} choose their keys)", sparse) : "",
      table["layers"].get<int64_t>(), "path", "GFLOP/layer", "MB/layer", "ms/layer", "ms");
  for (const JsonOut& row : table["paths"])
    out += fmt::format("{} {:<10} {:>14.3f} {:>12.3f} {:>12.3f} {:>12.1f}\n",
                       row["path"] == table["chosen"] ? "*" : " ", row["path"].get<std::string>(),
                       row["gflop_per_layer"].get<double>(), row["mb_per_layer"].get<double>(),
                       row["ms_per_layer"].get<double>(), row["ms"].get<double>());
  out += "  cache of these tokens:";
  for (const JsonOut& row : table["cache"]) {
    const auto ranks = row["dcp"].get<int64_t>();
    out +=
        fmt::format("{} {}{}", ranks == 1 ? "" : ";", MemoryText(row["cache_bytes"].get<int64_t>()),
                    ranks == 1 ? "" : fmt::format(" per rank with --dcp {}", ranks));
  }
  out += '\n';
  for (const JsonOut& row : table["spread"]) {
    const JsonOut& from = row["pays_from_tokens"];
    out += fmt::format(
        "  spread over {} groups (--dp {}): a token saves {:.3f} ms of attention, costs {:.3f} ms "
        "for "
        "the weights and {:.3f} ms for exchanges; it pays {}\n",
        row["dp"].get<int64_t>(), row["dp"].get<int64_t>(), row["saved_ms"].get<double>(),
        row["pass_ms"].get<double>(), row["exchange_ms"].get<double>(),
        from.is_null() ? "at no length" : fmt::format("from {} tokens on", from.get<int64_t>()));
  }
  return out;
}

Status InspectCommand(const InspectFlags& flags) {
  if (flags.options) return Print(OptionsDocument());
  if (flags.limits) return Print(LimitsDocument());
  if (flags.commands) return Print(CliDocument(flags.program.Info()));
  LATTE_ASSIGN_OR_RETURN(const std::string path, ResolveModelPath(flags.model));
  LATTE_ASSIGN_OR_RETURN(const ModelConfig config, LoadModelConfig(path));
  EngineOptions options;
  LATTE_RETURN_IF_ERROR(flags.engine.Apply(options));
  LATTE_RETURN_IF_ERROR(flags.engine.Validate(options));
  LATTE_ASSIGN_OR_RETURN(const ComputeDevice device, ComputeDevice::Open(options.device));
  LATTE_ASSIGN_OR_RETURN(JsonOut report, InspectModel(path, config, device));
  if (!device.is_gpu()) WarnIfLarge(path, config);
  if (options.check_weights) {
    LATTE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(path));
    ProgressOfLoading shown;
    LATTE_RETURN_IF_ERROR(CheckWeights(checkpoint, shown.Hooks().checked));
  }
  JsonOut processor, kernels, selection;
  if (flags.kernels) {
    LATTE_ASSIGN_OR_RETURN(const Machine machine, Machine::Detect());
    processor = InspectProcessor(machine);
    kernels = InspectKernels(config, machine);
    selection = InspectSelection(config, machine);
  }
  JsonOut paths;
  if (flags.path) {
    LATTE_ASSIGN_OR_RETURN(const Machine machine, Machine::Detect());
    const FoundRates found = MachineRates(machine);
    WarnAboutRates(found.warning);
    LATTE_ASSIGN_OR_RETURN(paths, InspectPath(config, flags.prompt, found.rates));
  }
  if (flags.json) {
    if (flags.path) report["path"] = paths;
    if (flags.kernels) {
      report["processor"] = processor;
      report["kernels"] = kernels;
      report["selection"] = selection;
    }
    return Print(Dump(report, 2) + "\n");
  }
  std::string out = InspectSummary(report);
  if (flags.kernels) out += RenderKernels(kernels) + RenderSelection(processor, selection);
  if (flags.path) out += RenderPath(paths);
  return PrintBars(out);
}

}  // namespace

Command AddInspect(const FlagSet& app) {
  auto flags = std::make_shared<InspectFlags>(InspectFlags{.program = app});
  const FlagSet sub = app.AddCommand("inspect", "Parameters, cache sizes and kernels of a model");
  sub.Add("MODEL", flags->model, "model, or a config.json alone (default: tiny)");
  sub.AddSwitch("--kernels", flags->kernels,
                "list the kernels and show which one serves which shape here");
  sub.AddSwitch("--options", flags->options,
                "describe all options of the engine and of requests, in Markdown");
  sub.AddSwitch("--limits", flags->limits, "describe all limits, in Markdown");
  sub.AddSwitch("--commands", flags->commands,
                "describe all commands and their options, in Markdown");
  sub.AddSwitch("--path", flags->path,
                "estimate the attention paths of a prompt (--q, --kv) and show the choice");
  sub.Add("--q", flags->prompt.new_tokens, "new tokens of the prompt (default: 1)");
  sub.Add("--kv", flags->prompt.cached_tokens, "cached tokens before them (default: 4096)");
  sub.Group("Output").AddSwitch("--json", flags->json, "one JSON object instead of a table");
  flags->engine.Add(sub, [](const Field& f, std::string_view) {
    return f.name == "check_weights" || f.name == "device";
  });
  return {sub, [flags] { return InspectCommand(*flags); }};
}

}  // namespace latte

// latte synth: writes a checkpoint of a published shape with random weights.
#include <csignal>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/flags/command.h"
#include "apps/terminal/interrupts.h"
#include "apps/terminal/progress.h"
#include "lab/synth/synth.h"
#include "src/base/json_out.h"

namespace latte {
namespace {

struct SynthFlags {
  std::string out;
  std::string shape = "v2-lite";
  std::string dtype = "bf16";
  SynthSpec spec;
  int threads = 0;
  bool force = false;
  bool json = false;
};

Status SynthCommand(const SynthFlags& flags) {
  SynthSpec spec = flags.spec;
  spec.shape = flags.shape;
  LATTE_ASSIGN_OR_RETURN(spec.format, ParseSynthFormat(flags.dtype));
  // Must precede the start of threads, so that this thread receives the signals.
  LATTE_ASSIGN_OR_RETURN(const Interrupts interrupts, Interrupts::Catch({SIGINT, SIGTERM, SIGHUP}));
  ThreadPool threads(flags.threads);
  WriterOptions options = {.force = flags.force};
  options.interrupted = [&] { return interrupts.TakeFirst(); };
  Progress shown("written");
  LATTE_ASSIGN_OR_RETURN(
      const SynthReport report,
      WriteSynth(spec, flags.out, threads, options, std::bind_front(&Progress::Show, &shown)));
  interrupts.Release();
  ShowNotes(report.notes);
  if (!flags.json)
    return Print(fmt::format("{}: {}, {} parameters, {} bytes, {:.1f} s\n", flags.out, spec.shape,
                             report.params, report.bytes, report.seconds));
  const JsonOut out = {
      {"out", flags.out},         {"shape", spec.shape},           {"dtype", flags.dtype},
      {"seed", spec.seed},        {"total_params", report.params}, {"bytes", report.bytes},
      {"seconds", report.seconds}};
  return Print(Dump(out) + "\n");
}

}  // namespace

Command AddSynth(const FlagSet& app) {
  auto flags = std::make_shared<SynthFlags>();
  const FlagSet sub = app.AddCommand(
      "synth",
      "Write a checkpoint of a published shape: random weights, a tokenizer of invented words");
  sub.Add("OUT", flags->out, "folder to write").Required().Value("FOLDER");
  sub.Add("--shape", flags->shape, "published shape (default: v2-lite)")
      .Value(fmt::format("{}", fmt::join(SynthShapes(), "|")));
  sub.Add("--layers", flags->spec.layers,
          "layers (default: the model's); the first ones stay dense, as in the model");
  sub.Add("--dense", flags->spec.dense, "first layers without experts (default: the model's)");
  sub.Add("--vocab", flags->spec.vocab, "tokens of the vocabulary (default: the model's)");
  sub.Add("--experts", flags->spec.experts, "experts per layer (default: the model's)");
  sub.Add(
      "--mtp", flags->spec.mtp,
      "multi-token-prediction layers (default: 1 for v3-lite and v3-micro, none for the others)");
  sub.Add("--dtype", flags->dtype,
          fmt::format("{} (default: bf16); all but the first two as `quantize` writes them",
                      SynthFormats()));
  sub.Add("-s,--seed", flags->spec.seed,
          "same seed, same weights; fixed, so that files compare (default: 0)");
  AddThreads(sub, flags->threads, 0);
  sub.AddSwitch("--force", flags->force,
                "replace the checkpoint in OUT; refused if OUT holds anything else");
  sub.Group("Output").AddSwitch("--json", flags->json, "one JSON object instead of text");
  return {sub, [flags] { return SynthCommand(*flags); }};
}

}  // namespace latte

// latte bench: speed of kernels and layers, compared with the peak of the processor.
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "apps/commands/bench_command.h"
#include "apps/ranks.h"
#include "apps/record_file.h"
#include "apps/terminal/progress.h"
#include "lab/bench/bench_absorption.h"
#include "lab/bench/bench_attention.h"
#include "lab/bench/bench_dispatch.h"
#include "lab/bench/bench_gemm.h"
#include "lab/bench/bench_pool.h"
#include "lab/bench/bench_sampler.h"
#include "src/base/json_out.h"
#include "src/jobs/bench/bench_model.h"
#include "src/jobs/report/model_table.h"
#include "src/jobs/report/record_table.h"
#include "src/tensor/arithmetic.h"

namespace latte {
namespace {

// Prints a record as one JSON object, or as a table.
Status PrintRecord(const JsonOut& record, bool json) {
  return Print(json ? Dump(record) + "\n" : RecordTable(record));
}

Result<DType> ParseFloat(std::string_view flag, const std::string& text) {
  const Result<DType> dtype = ParseArithmetic(text);
  if (dtype) return dtype;
  return InvalidArgument(fmt::format("{}: expected f32, bf16 or f16, found '{}'", flag, text));
}

constexpr char kCacheFormats[] = "bf16|f16|f32|fp8|fp8-dense|int8|q6";

// The flags of every bench of a kernel.
void AddKernelFlags(const FlagSet& sub, BenchKernelOptions& o) {
  AddThreads(sub, o.threads, 1);
  sub.Add("--kernel", o.kernel,
          "a kernel of `latte inspect --kernels` (default: the engine's choice)");
}

struct AttentionFlags {
  BenchAttentionOptions options;
  std::string phase = "decode";
  std::string cache_dtype = "bf16";
  std::string dtype = "bf16";
};

Result<JsonOut> RunAttention(const AttentionFlags& flags, const Machine& machine,
                             const JobProgress& progress) {
  BenchAttentionOptions options = flags.options;
  if (flags.phase == "decode") {
    LATTE_ASSIGN_OR_RETURN(options.cache_dtype, ParseCacheDType(flags.cache_dtype));
    return BenchDecode(options, machine, progress);
  }
  if (flags.phase != "prefill")
    return InvalidArgument(
        fmt::format("--phase: expected decode or prefill, found '{}'", flags.phase));
  LATTE_ASSIGN_OR_RETURN(options.dtype, ParseFloat("--dtype", flags.dtype));
  return BenchPrefill(options, machine, progress);
}

void AddAttention(const FlagSet& bench, BenchFlags& flags) {
  const auto [sub, own] = AddBench<AttentionFlags>(
      bench, flags, "attention", "One attention kernel on random data", RunAttention);
  BenchAttentionOptions& o = own->options;
  sub.Add("--phase", own->phase,
          "decode: absorbed, over latents; prefill: expanded (default: decode)")
      .Value("decode|prefill");
  sub.Add("--heads", o.heads, "query heads (default: 128)");
  sub.Add("--context", o.context, "tokens per sequence, the new ones included (default: 8192)");
  sub.Add("--batch", o.batch, "sequences (default: 1)");
  sub.Add("--q-len", o.q_len, "new tokens per sequence (default: 1; prefill: all of the context)");
  sub.Add("--cache-dtype", own->cache_dtype, "decode: format of the cache (default: bf16)")
      .Value(kCacheFormats);
  sub.Add("--c", o.c, "decode: width of the latent (default: 512)");
  sub.Add("--r", o.r, "decode: width of the rope part (default: 64)");
  sub.Add("--dtype", own->dtype, "prefill: arithmetic (default: bf16)").Value("bf16|f16|f32");
  AddKernelFlags(sub, o);
}

void AddDispatchOptions(const FlagSet& sub, DispatchOptions& o) {
  sub.Add("--heads", o.heads, "query heads (default: 16)");
  AddThreads(sub, o.threads, 1);
}

void AddDispatch(const FlagSet& bench, BenchFlags& flags) {
  const auto [sub, own] = AddBench<DispatchOptions>(
      bench, flags, "dispatch", "The chosen attention path compared with the faster one",
      [](const DispatchOptions& options, const Machine& machine, const JobProgress& progress) {
        const FoundRates found = MachineRates(machine);
        WarnAboutRates(found.warning);
        return BenchDispatch(options, found.rates, machine, progress);
      });
  AddDispatchOptions(sub, *own);
}

struct CalibrateFlags {
  DispatchOptions options;
  std::string out = DefaultRatesPath();

  Result<JsonOut> Run(const Machine& machine, const JobProgress& progress) const {
    if (out.empty())
      return InvalidArgument("--out: expected a file, because no home folder is known");
    std::error_code ignored;  // if the folder cannot be made, the next line fails
    std::filesystem::create_directories(std::filesystem::path(out).parent_path(), ignored);
    LATTE_RETURN_IF_ERROR(MayReplace(out, RatesFile()));
    LATTE_ASSIGN_OR_RETURN(const MlaRates rates, MeasureRates(options, machine, progress));
    const JsonOut record = ToJson(rates, machine);
    LATTE_RETURN_IF_ERROR(WriteRecord(out, record, RatesFile()));
    return record;
  }
};

void AddCalibrate(const FlagSet& bench, BenchFlags& flags) {
  const auto [sub, own] = AddBench<CalibrateFlags>(
      bench, flags, "calibrate",
      "Measure the rates that attention paths are chosen by, and save them",
      std::mem_fn(&CalibrateFlags::Run));
  AddDispatchOptions(sub, own->options);
  sub.Add("--out", own->out,
          "file to write (default: $LATTE_RATES, else ~/.cache/latte/rates.json)")
      .Value("FILE");
}

void AddAbsorption(const FlagSet& bench, BenchFlags& flags) {
  const auto [sub, own] = AddBench<AbsorptionOptions>(
      bench, flags, "absorption", "A decode step of one layer in five forms", BenchAbsorption);
  sub.Add("--heads", own->heads, "query heads (default: 128)");
  sub.Add("--context", own->context, "cached tokens per request (default: 1024)");
  sub.Add("--batch", own->batch, "requests (default: 1)");
  AddThreads(sub, own->threads, 1);
}

void AddWeights(const FlagSet& sub, BenchWeights& o) {
  sub.Add("--dtype", o.dtype,
          "weights: f32, f16, bf16, fp8, int8, int4, or a type of GGUF blocks such as Q4_K "
          "(default: "
          "bf16)")
      .Value("TYPE");
  sub.Add("--act", o.act,
          "activations (default: int8 for int8 and int4 weights, f32 for "
          "f32 weights, otherwise bf16)")
      .Value("f32|bf16|int8");
  AddKernelFlags(sub, o);
}

FlagSet AddGemm(const FlagSet& bench, BenchFlags& flags, const std::string& name) {
  const auto [sub, own] = AddBench<BenchGemmOptions>(
      bench, flags, name, "One matrix product on random data", BenchGemm);
  own->name = name;
  sub.Add("--m", own->m, "rows of activations (default: 1)");
  sub.Add("--n", own->n, "outputs (default: 7168)");
  sub.Add("--k", own->k, "inputs (default: 7168)");
  AddWeights(sub, *own);
  return sub;
}

void AddShape(const FlagSet& sub, BenchShapeOptions& o) {
  sub.Add("--shape", o.shape, "published shape (default: v3)").Value("v2-lite|v3");
  sub.Add("--m", o.m, "tokens (default: 1)");
  AddWeights(sub, o);
}

void AddShapes(const FlagSet& bench, BenchFlags& flags) {
  const auto projections = AddBench<BenchShapeOptions>(
      bench, flags, "projections", "The matrix products around attention", BenchProjections);
  AddShape(projections.flags, *projections.options);
  const auto moe =
      AddBench<BenchShapeOptions>(bench, flags, "moe", "The experts of one layer", BenchMoe);
  AddShape(moe.flags, *moe.options);
  moe.flags.Add("--skew", moe.options->skew,
                "the router chooses expert e with weight (e + 1)^-skew (default: 0)");
}

void AddPool(const FlagSet& bench, BenchFlags& flags) {
  const auto [sub, threads] =
      AddBench<int>(bench, flags, "pool", "Cost of handing work to threads",
                    [](int count, const Machine&, const JobProgress& progress) {
                      return BenchPool(count, progress);
                    });
  AddThreads(sub, *threads, 2);
}

void AddSampler(const FlagSet& bench, BenchFlags& flags) {
  const auto [sub, own] = AddBench<BenchSamplerOptions>(
      bench, flags, "sampler", "Cost of sampling per row of logits", BenchSampler);
  sub.Add("--vocab", own->vocab, "logits per row (default: 129280)");
  sub.Add("--rows", own->rows, "rows sampled by one call (default: 16)");
  AddThreads(sub, own->threads, 1);
}

struct ModelFlags {
  ModelChoice model;
  std::string dtype = "bf16";
  std::string cache_dtype = "bf16";
  BenchModelOptions options;
  StructFlags<EngineOptions> ranks;

  Result<BenchModelOptions> Options() const {
    BenchModelOptions out = options;
    LATTE_ASSIGN_OR_RETURN(out.dtype, ParseArithmetic(dtype));
    LATTE_ASSIGN_OR_RETURN(out.cache_dtype, ParseCacheDType(cache_dtype));
    LATTE_RETURN_IF_ERROR(out.Validate());
    out.engine = ranks.values;
    out.engine.threads = out.threads;
    LATTE_RETURN_IF_ERROR(ranks.Apply(out.engine));
    LATTE_RETURN_IF_ERROR(ranks.Validate(out.engine));
    return out;
  }

  Status Run(bool json) const {
    LATTE_ASSIGN_OR_RETURN(BenchModelOptions own, Options());
    LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<RankWorld> world, JoinRanks(own.engine));
    if (world && !world->leads()) return FollowLeader(*world);
    Progress shown("bench model", "steps");
    const auto bench = [&](const Model& loaded, const ComputeDevice& device) {
      const FoundRates found = MachineRates(device.machine());
      WarnAboutRates(found.warning);
      return BenchModel(loaded, own, device, found.rates, world.get(), shown.ForMeasurements());
    };
    LATTE_ASSIGN_OR_RETURN(const JsonOut record, model.Run(own.engine, bench, world.get()));
    shown.End();
    return Print(json ? Dump(record) + "\n" : ModelTable(record));
  }
};

void AddModel(const FlagSet& bench, BenchFlags& flags) {
  auto own = std::make_shared<ModelFlags>();
  const FlagSet sub =
      bench.AddCommand("model", "Prefill and decode of a whole model at a context depth");
  sub.Group("Output").AddSwitch("--json", flags.json, "one JSON object instead of a table");
  sub.OnChosen([&flags, own] { flags.own = [own](bool json) { return own->Run(json); }; });
  BenchModelOptions& o = own->options;
  own->model.Add(sub);
  sub.Add("--prompt", o.prompt, "prompt tokens; 0: none (default: 512)");
  sub.Add("--gen", o.gen, "decode steps; 0: none (default: 16)");
  sub.Add("--depth", o.depth, "cached tokens before them (default: 0)");
  sub.Add("--batch", o.batch, "sequences of a decode step (default: 1)");
  AddThreads(sub, o.threads, 0);
  const FlagSet computation = sub.Group("Computation");
  computation.Add("--dtype", own->dtype, "arithmetic (default: bf16)").Value("bf16|f16|f32");
  computation.Add("--cache-dtype", own->cache_dtype, "format of the cache (default: bf16)")
      .Value(kCacheFormats);
  AddField(sub, FieldOf<EngineOptions>("int8_activations"), &o.int8_activations);
  AddField(sub, FieldOf<EngineOptions>("attention"), &o.attention);
  own->ranks.Add(sub, [](const Field& field, std::string_view group) {
    const bool chooses_group = field.name == "dp_policy" || field.name == "dp_spread_tokens";
    return (group == "Ranks" && !chooses_group) ||  // there is one group's work
           field.name == "device";
  });
}

Status BenchCommand(const BenchFlags& flags) {
  if (flags.own) return flags.own(flags.json);
  LATTE_ASSIGN_OR_RETURN(const Machine machine, Machine::Detect());
  LATTE_ASSIGN_OR_RETURN(const JsonOut record, flags.bench(machine));
  return PrintRecord(record, flags.json);
}

}  // namespace

Command AddBench(const FlagSet& app) {
  auto flags = std::make_shared<BenchFlags>();
  const FlagSet sub = app.AddCommand("bench", "Speed of kernels, engines and servers");
  AddAttention(sub, *flags);
  AddGemm(sub, *flags, "gemm");
  AddGemm(sub, *flags, "linear").Hide();  // the former name
  AddShapes(sub, *flags);
  AddPool(sub, *flags);
  AddSampler(sub, *flags);
  AddDispatch(sub, *flags);
  AddCalibrate(sub, *flags);
  AddAbsorption(sub, *flags);
  AddModel(sub, *flags);
  AddEngineBenches(sub, *flags);
  AddSimulationBenches(sub, *flags);
  AddServeBench(sub, *flags);
  return {sub, [flags] { return BenchCommand(*flags); }};
}

}  // namespace latte

// latte bench: how fast kernels are, alone.
#include <fmt/format.h>

#include "apps/command.h"
#include "src/jobs/bench_attention.h"
#include "src/jobs/bench_linear.h"

namespace latte {
namespace {

struct BenchFlags {
  BenchAttentionOptions attention;
  std::string cache_dtype = "bf16";
  BenchLinearOptions linear;
  BenchShapeOptions projections;
  BenchShapeOptions moe;
  bool json = false;
};

Status PrintRecord(const JsonOut& record, bool json) {
  if (json) return Print(Dump(record) + "\n");
  std::string table;
  for (const auto& [key, value] : record.items())
    table +=
        fmt::format("{:<17} {}\n", key, value.is_string() ? value.get<std::string>() : Dump(value));
  return Print(table);
}

Result<JsonOut> Attention(const BenchFlags& flags, const Machine& machine) {
  BenchAttentionOptions options = flags.attention;
  const Result<DType> dtype = ParseArithmetic(flags.cache_dtype);
  if (!dtype)
    return InvalidArgument(
        fmt::format("--cache-dtype: expected f32, bf16 or f16, found '{}'", flags.cache_dtype));
  options.cache_dtype = *dtype;
  return BenchAttention(options, machine);
}

void AddAttention(CLI::App& bench, BenchFlags& flags) {
  CLI::App* sub = bench.add_subcommand("attention", "One attention kernel on random data");
  BenchAttentionOptions& o = flags.attention;
  sub->add_option("--phase", o.phase, "decode: absorbed attention over latents (default)");
  sub->add_option("--heads", o.heads, "query heads (default: 128)");
  sub->add_option("--context", o.context,
                  "tokens per sequence, the new ones included (default: 8192)");
  sub->add_option("--batch", o.batch, "sequences (default: 1)");
  sub->add_option("--q-len", o.q_len, "new tokens per sequence (default: 1)");
  sub->add_option("--cache-dtype", flags.cache_dtype, "bf16, f16 or f32 (default: bf16)");
  sub->add_option("--threads", o.threads, "threads (default: 1)");
  sub->add_option("--kernel", o.kernel,
                  "a row of `latte inspect --kernels` (default: what the engine takes)");
  sub->add_flag("--json", flags.json, "one JSON object instead of a table");
}

void AddWeights(CLI::App& sub, BenchWeights& o, bool& json) {
  sub.add_option("--dtype", o.dtype, "weights: f32, f16, bf16, fp8, int8 or int4 (default: bf16)");
  sub.add_option("--act", o.act,
                 "activations: f32, bf16 or int8 (default: int8 for int8 and int4 weights, f32 for "
                 "f32 ones, else bf16)");
  sub.add_option("--threads", o.threads, "threads (default: 1)");
  sub.add_option("--kernel", o.kernel,
                 "a row of `latte inspect --kernels` (default: what the engine takes)");
  sub.add_flag("--json", json, "one JSON object instead of a table");
}

void AddLinear(CLI::App& bench, BenchFlags& flags) {
  CLI::App* sub = bench.add_subcommand("linear", "One matrix product on random data");
  sub->add_option("--m", flags.linear.m, "rows of activations (default: 1)");
  sub->add_option("--n", flags.linear.n, "outputs (default: 7168)");
  sub->add_option("--k", flags.linear.k, "inputs (default: 7168)");
  AddWeights(*sub, flags.linear, flags.json);
}

CLI::App* AddShaped(CLI::App& bench, const std::string& name, const std::string& what,
                    BenchShapeOptions& o, bool& json) {
  CLI::App* sub = bench.add_subcommand(name, what);
  sub->add_option("--shape", o.shape, "v2-lite or v3 (default: v3)");
  sub->add_option("--m", o.m, "tokens (default: 1)");
  AddWeights(*sub, o, json);
  return sub;
}

Result<JsonOut> Chosen(const CLI::App& bench, const BenchFlags& flags, const Machine& machine) {
  if (bench.got_subcommand("linear")) return BenchLinear(flags.linear, machine);
  if (bench.got_subcommand("projections")) return BenchProjections(flags.projections, machine);
  if (bench.got_subcommand("moe")) return BenchMoe(flags.moe, machine);
  return Attention(flags, machine);
}

}  // namespace

Command AddBench(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* bench =
      app.add_subcommand("bench", "How fast kernels are, next to what the processor can do");
  bench->require_subcommand(1);
  AddAttention(*bench, *flags);
  AddLinear(*bench, *flags);
  AddShaped(*bench, "projections", "The matrix products around attention", flags->projections,
            flags->json);
  CLI::App* moe = AddShaped(*bench, "moe", "The experts of one layer", flags->moe, flags->json);
  moe->add_option("--skew", flags->moe.skew,
                  "the router draws expert e with weight (e + 1)^-skew (default: 0)");
  return {bench, [flags, bench]() -> Status {
            LATTE_ASSIGN_OR_RETURN(const Machine machine, Machine::Detect());
            LATTE_ASSIGN_OR_RETURN(const JsonOut record, Chosen(*bench, *flags, machine));
            return PrintRecord(record, flags->json);
          }};
}

}  // namespace latte

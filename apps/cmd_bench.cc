// latte bench: how fast kernels are, alone.
#include <fmt/format.h>

#include "apps/command.h"
#include "src/jobs/bench_attention.h"
#include "src/jobs/bench_pool.h"
#include "src/jobs/bench_prefill.h"

namespace latte {
namespace {

constexpr int64_t kUnset = INT64_MIN;

Status PrintRecord(const JsonOut& record, bool json) {
  if (json) return Print(Dump(record) + "\n");
  std::string table;
  for (const auto& [key, value] : record.items())
    table +=
        fmt::format("{:<21} {}\n", key, value.is_string() ? value.get<std::string>() : Dump(value));
  return Print(table);
}

struct AttentionFlags {
  BenchAttentionOptions options;
  std::string phase = "decode";
  int64_t q_len = kUnset;
  std::string cache_dtype = "bf16";
  std::string dtype = "bf16";
  bool json = false;
};

Result<DType> ParseFloat(std::string_view flag, const std::string& text) {
  const Result<DType> dtype = ParseArithmetic(text);
  if (dtype) return dtype;
  return InvalidArgument(fmt::format("{}: expected f32, bf16 or f16, found '{}'", flag, text));
}

Result<JsonOut> MeasureDecode(const AttentionFlags& flags, const Machine& machine) {
  BenchAttentionOptions options = flags.options;
  options.q_len = flags.q_len == kUnset ? 1 : flags.q_len;
  LATTE_ASSIGN_OR_RETURN(options.cache_dtype, ParseFloat("--cache-dtype", flags.cache_dtype));
  return BenchAttention(options, machine);
}

Result<JsonOut> MeasurePrefill(const AttentionFlags& flags, const Machine& machine) {
  const BenchAttentionOptions& o = flags.options;
  BenchPrefillOptions options{o.heads, o.context, o.batch, o.context, {}, o.threads, o.kernel};
  if (flags.q_len != kUnset) options.q_len = flags.q_len;
  LATTE_ASSIGN_OR_RETURN(options.dtype, ParseFloat("--dtype", flags.dtype));
  return BenchPrefill(options, machine);
}

Status BenchAttentionCommand(const AttentionFlags& flags) {
  if (flags.phase != "decode" && flags.phase != "prefill")
    return InvalidArgument(
        fmt::format("--phase: expected decode or prefill, found '{}'", flags.phase));
  LATTE_ASSIGN_OR_RETURN(const Machine machine, Machine::Detect());
  LATTE_ASSIGN_OR_RETURN(const JsonOut out, flags.phase == "decode"
                                                ? MeasureDecode(flags, machine)
                                                : MeasurePrefill(flags, machine));
  return PrintRecord(out, flags.json);
}

struct PoolFlags {
  int threads = 2;
  bool json = false;
};

Status BenchPoolCommand(const PoolFlags& flags) {
  LATTE_ASSIGN_OR_RETURN(const JsonOut out, BenchPool(flags.threads));
  return PrintRecord(out, flags.json);
}

}  // namespace

Command AddBench(CLI::App& app) {
  auto flags = std::make_shared<AttentionFlags>();
  CLI::App* sub =
      app.add_subcommand("bench", "How fast kernels are, next to what the processor can do");
  sub->require_subcommand(1);
  CLI::App* attention = sub->add_subcommand("attention", "One attention kernel on random data");
  BenchAttentionOptions& o = flags->options;
  attention->add_option("--phase", flags->phase,
                        "decode: absorbed, over latents (default); prefill: expanded");
  attention->add_option("--heads", o.heads, "query heads (default: 128)");
  attention->add_option("--context", o.context,
                        "tokens per sequence, the new ones included (default: 8192)");
  attention->add_option("--batch", o.batch, "sequences (default: 1)");
  attention->add_option("--q-len", flags->q_len,
                        "new tokens per sequence (default: 1; prefill: all of the context)");
  attention->add_option("--cache-dtype", flags->cache_dtype,
                        "decode: bf16, f16 or f32 (default: bf16)");
  attention->add_option("--dtype", flags->dtype,
                        "prefill: arithmetic, bf16, f16 or f32 (default: bf16)");
  attention->add_option("--threads", o.threads, "threads (default: 1)");
  attention->add_option("--kernel", o.kernel,
                        "a row of `latte inspect --kernels` (default: what the engine takes)");
  attention->add_flag("--json", flags->json, "one JSON object instead of a table");
  auto pool_flags = std::make_shared<PoolFlags>();
  CLI::App* pool = sub->add_subcommand("pool", "What handing work to threads costs");
  pool->add_option("--threads", pool_flags->threads, "threads (default: 2)");
  pool->add_flag("--json", pool_flags->json, "one JSON object instead of a table");
  return {sub, [flags, pool_flags, pool] {
            return pool->parsed() ? BenchPoolCommand(*pool_flags) : BenchAttentionCommand(*flags);
          }};
}

}  // namespace latte

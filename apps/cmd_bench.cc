// latte bench: how fast kernels are, alone.
#include <fmt/format.h>

#include "apps/command.h"
#include "src/jobs/bench_attention.h"

namespace latte {
namespace {

struct BenchFlags {
  BenchAttentionOptions options;
  std::string cache_dtype = "bf16";
  bool json = false;
};

Status BenchCommand(const BenchFlags& flags) {
  BenchAttentionOptions options = flags.options;
  LATTE_ASSIGN_OR_RETURN(options.cache_dtype, ParseCacheDType(flags.cache_dtype));
  LATTE_ASSIGN_OR_RETURN(const Machine machine, Machine::Detect());
  LATTE_ASSIGN_OR_RETURN(const JsonOut out, BenchAttention(options, machine));
  if (flags.json) return Print(Dump(out) + "\n");
  std::string table;
  for (const auto& [key, value] : out.items())
    table +=
        fmt::format("{:<17} {}\n", key, value.is_string() ? value.get<std::string>() : Dump(value));
  return Print(table);
}

}  // namespace

Command AddBench(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* sub =
      app.add_subcommand("bench", "How fast kernels are, next to what the processor can do");
  sub->require_subcommand(1);
  CLI::App* attention = sub->add_subcommand("attention", "One attention kernel on random data");
  BenchAttentionOptions& o = flags->options;
  attention->add_option("--phase", o.phase, "decode: absorbed attention over latents (default)");
  attention->add_option("--heads", o.heads, "query heads (default: 128)");
  attention->add_option("--context", o.context,
                        "tokens per sequence, the new ones included (default: 8192)");
  attention->add_option("--batch", o.batch, "sequences (default: 1)");
  attention->add_option("--q-len", o.q_len, "new tokens per sequence (default: 1)");
  attention->add_option("--cache-dtype", flags->cache_dtype,
                        "bf16, f16, f32, fp8, fp8-dense, int8 or q6 (default: bf16)");
  attention->add_option("--c", o.c, "width of the latent (default: 512)");
  attention->add_option("--r", o.r, "width of the rope part (default: 64)");
  attention->add_option("--threads", o.threads, "threads (default: 1)");
  attention->add_option("--kernel", o.kernel,
                        "a row of `latte inspect --kernels` (default: what the engine takes)");
  attention->add_flag("--json", flags->json, "one JSON object instead of a table");
  return {sub, [flags] { return BenchCommand(*flags); }};
}

}  // namespace latte

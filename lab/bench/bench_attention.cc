#include "lab/bench/bench_attention.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "lab/bench/bench_kernel.h"
#include "src/base/json_out.h"
#include "src/base/math.h"
#include "src/base/random.h"
#include "src/base/range.h"
#include "src/kernels/params/mla.h"

namespace latte {
namespace {

constexpr int64_t kBenchPageTokens = 64;
constexpr int64_t kMaxCacheBytes = int64_t{16} << 30;

// A cache, queries, and space for the output.
struct DecodeData {
  explicit DecodeData(const BenchAttentionOptions& o)
      : pages_each(CeilDiv(o.context, kBenchPageTokens)),
        q_latent(DType::kF32, {o.batch * o.q_len, o.heads, o.c}),
        q_rope(DType::kF32, {o.batch * o.q_len, o.heads, o.r}),
        pages(o.cache_dtype.dtype,
              {o.batch * pages_each, kBenchPageTokens, o.cache_dtype.Width(o.c, o.r)}),
        o_latent(DType::kF32, {o.batch * o.q_len, o.heads, o.c}),
        lse(DType::kF32, {o.batch * o.q_len, o.heads}),
        row_format{o.cache_dtype.kind},
        page_table(static_cast<size_t>(o.batch * pages_each)) {
    for (const TensorView& t : {q_latent.view(), q_rope.view()}) FillNoise(t);
    FillPages(o);
    std::iota(page_table.begin(), page_table.end(), 0);
    Random random(1);
    for (size_t i = page_table.size(); i > 1; --i)
      std::swap(page_table[i - 1], page_table[random.Below(i)]);
    for (int64_t b = 0; b < o.batch; ++b)
      sequences.push_back({.query_start = b * o.q_len,
                           .count = o.q_len,
                           .cached_len = o.context - o.q_len,
                           .pages = std::span(page_table)
                                        .subspan(static_cast<size_t>(b * pages_each),
                                                 static_cast<size_t>(pages_each))});
  }

  // Copies one page of tokens to every page.
  void FillPages(const BenchAttentionOptions& o) const {
    const Tensor latent(DType::kF32, {kBenchPageTokens, o.c});
    const Tensor rope(DType::kF32, {kBenchPageTokens, o.r});
    FillNoise(latent);
    FillNoise(rope);
    std::vector<int64_t> slots(kBenchPageTokens);
    ThreadPool threads(1);
    for (int64_t page = 0; page < o.batch * pages_each; ++page) {
      std::iota(slots.begin(), slots.end(), page * kBenchPageTokens);
      Kernels<AppendOp>().front().run({latent, rope, pages, slots, row_format},
                                      {&threads, nullptr});
    }
  }

  MlaDecodeOp::Params Params() const {
    MlaDecodeOp::Params p;
    p.q_latent = q_latent;
    p.q_rope = q_rope;
    p.pages = pages;
    p.sequences = sequences;
    p.o_latent = o_latent;
    p.lse = lse;
    p.scale = 1.0f / std::sqrt(192.0f);  // N + R = 128 + 64
    p.row_format = row_format;
    return p;
  }

  int64_t pages_each;
  Tensor q_latent, q_rope, pages, o_latent, lse;
  CacheRowFormat row_format;
  std::vector<int32_t> page_table;
  std::vector<SequenceChunk> sequences;
};

struct AttentionWork {
  int64_t flops, bytes, unique_bytes, cache_bytes;
};

AttentionWork WorkOf(const BenchAttentionOptions& o) {
  const int64_t row_bytes = o.cache_dtype.RowBytes(o.c, o.r);
  // Token i of a sequence attends to all but the q_len − 1 − i newest keys.
  const int64_t pairs = o.batch * (o.q_len * o.context - o.q_len * (o.q_len - 1) / 2);
  const int64_t rows = o.batch * o.q_len * o.heads;
  const int64_t other = rows * (o.c + o.r + o.c + 1) * SizeOf(DType::kF32);
  const int64_t cache = o.batch * o.context * row_bytes;
  return {2 * o.heads * (2 * o.c + o.r) * pairs, pairs * row_bytes + other, cache + other, cache};
}

// The fastest arithmetic that a kernel can use for this cache type.
DType ArithmeticOf(CacheDType cache) {
  if (cache.kind == CacheFormat::kI8) return DType::kI8;
  return cache.kind == CacheFormat::kPlain ? cache.dtype : DType::kBF16;
}

}  // namespace

Status BenchAttentionOptions::Validate() const {
  LATTE_RETURN_IF_ERROR(FlagInRange("--heads", heads, 1, 1024));
  LATTE_RETURN_IF_ERROR(FlagInRange("--context", context, 1, 1 << 20));
  LATTE_RETURN_IF_ERROR(FlagInRange("--batch", batch, 1, 1024));
  LATTE_RETURN_IF_ERROR(FlagInRange("--q-len", q_len, 1, context));
  LATTE_RETURN_IF_ERROR(FlagInRange("--threads", threads, 1, 1024));
  LATTE_RETURN_IF_ERROR(FlagInRange("--c", c, 1, 1024));
  if (r < 0 || r > 128) return InvalidArgument(fmt::format("--r: expected 0 to 128, found {}", r));
  const int64_t queries = batch * q_len * heads * (2 * c + r + 1) * SizeOf(DType::kF32);
  const int64_t bytes = batch * context * cache_dtype.RowBytes(c, r) + queries;
  if (bytes <= kMaxCacheBytes) return {};
  return Exhausted(fmt::format(
      "cache, queries and outputs: expected at most {} bytes, found {}; lower --batch, --context "
      "or --q-len",
      kMaxCacheBytes, bytes));
}

Result<JsonOut> BenchAttention(const BenchAttentionOptions& options, const Machine& machine,
                               const JobProgress& progress) {
  LATTE_RETURN_IF_ERROR(options.Validate());
  MeasuredSteps steps(progress, kBenchSteps);
  const DecodeData data(options);
  const MlaDecodeOp::Params params = data.Params();
  LATTE_ASSIGN_OR_RETURN(
      const Kernel<MlaDecodeOp>* row,
      FindBenchRow<MlaDecodeOp>(options.kernel, MlaDecodeOp::ShapeOf(params),
                                fmt::format("a cache of {}", Name(options.cache_dtype)), machine));
  ThreadPool threads(options.threads);
  const AttentionWork work = WorkOf(options);
  const auto flops = static_cast<double>(work.flops);
  const Exec exec{&threads, &machine};
  const Ceiling ceiling = CeilingOf(row->isa, ArithmeticOf(options.cache_dtype));
  const BenchSamples samples =
      MeasureBench(ceiling, flops, exec, steps, [&] { row->run(params, exec); });
  const double seconds = Median(samples.seconds);
  const double peak = samples.ceilings.Median(ceiling);
  JsonOut record{
      {"bench", "attention"},
      {"phase", "decode"},
      {"kernel", row->name},
      {"heads", options.heads},
      {"c", options.c},
      {"r", options.r},
      {"context", options.context},
      {"batch", options.batch},
      {"q_len", options.q_len},
      {"page_tokens", kBenchPageTokens},
      {"cache_dtype", Name(options.cache_dtype)},
      {"threads", options.threads},
      {"runs", kBenchRuns},
      {"flops", work.flops},
      {"bytes", work.bytes},
      {"unique_bytes", work.unique_bytes},
      {"us", seconds * 1e6},
      {"gflops", flops * 1e-9 / seconds},
      {"peak_gflops", OrNull(peak)},
      {"fraction", OrNull(Median(samples.fraction))},
      {"cache_gbps", static_cast<double>(work.cache_bytes) * 1e-9 / seconds},
  };
  samples.ceilings.AddTo(record);
  return record;
}

}  // namespace latte

#include "lab/bench/bench_attention.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "lab/bench/random_data.h"
#include "src/base/json_out.h"
#include "src/base/math.h"
#include "src/cache/latent_cache.h"
#include "src/jobs/bench/fill_cache.h"
#include "src/kernels/params/mla.h"

namespace latte {
namespace {

constexpr int64_t kBenchPageTokens = 64;
constexpr int64_t kMaxOperandBytes = int64_t{16} << 30;
// Prefill: DeepSeek's widths.
constexpr int64_t kN = 128;
constexpr int64_t kR = 64;
constexpr int64_t kV = 128;
constexpr int64_t kPad = 16;  // floats between keys, as in the layers

Status CheckRanges(const BenchAttentionOptions& o, int64_t q_len) {
  return FlagsInRange({{"--heads", o.heads, 1, 1024},
                       {"--context", o.context, 1, 1 << 20},
                       {"--batch", o.batch, 1, 1024},
                       {"--q-len", q_len, 1, o.context},
                       {"--threads", o.threads, 1, 1024}});
}

Status CheckBytes(std::string_view operands, int64_t bytes, std::string_view flags) {
  if (bytes <= kMaxOperandBytes) return {};
  return Exhausted(fmt::format("{}: expected at most {} bytes, found {}; lower {}", operands,
                               kMaxOperandBytes, bytes, flags));
}

// Token i of a sequence attends to all but the q_len − 1 − i newest keys.
int64_t PairsOf(const BenchAttentionOptions& o, int64_t q_len) {
  return o.batch * (q_len * o.context - q_len * (q_len - 1) / 2);
}

// A cache with one layer of latents. Errors: kExhausted.
Result<LatentCache> RandomCache(const BenchAttentionOptions& o) {
  const CacheRowFormat format{o.cache_dtype.kind};
  CacheSpec spec;
  spec.streams = {{StreamId::kLatent, o.cache_dtype.Width(o.c, o.r), o.cache_dtype.dtype, format}};
  spec.layers = 1;
  spec.page_tokens = kBenchPageTokens;
  LATTE_ASSIGN_OR_RETURN(
      LatentCache cache,
      LatentCache::Create(std::move(spec), o.batch * CeilDiv(o.context, kBenchPageTokens)));
  const Tensor latent(DType::kF32, {kBenchPageTokens, o.c});
  const Tensor rope(DType::kF32, {kBenchPageTokens, o.r});
  FillRandom(latent, 1.0f, 1);
  FillRandom(rope, 1.0f, 2);
  std::vector<int64_t> slots(kBenchPageTokens);
  std::iota(slots.begin(), slots.end(), 0);
  ThreadPool one(1);
  Kernels<AppendOp>().front().run({latent, rope, cache.View(StreamId::kLatent, 0), slots, format},
                                  {&one, nullptr});
  CopyFirstPage(cache);
  return cache;
}

// The fastest arithmetic that a kernel can use for this cache type.
DType ArithmeticOf(CacheDType cache) {
  if (cache.kind == CacheFormat::kI8) return DType::kI8;
  return cache.kind == CacheFormat::kPlain ? cache.dtype : DType::kBF16;
}

// Numbers of a prompt that are read or written once: queries and outputs, and keys and values.
int64_t QueryFloats(const BenchAttentionOptions& o, int64_t q_len) {
  return q_len * o.heads * (kN + kR + kV + 1);
}
int64_t KeyFloats(const BenchAttentionOptions& o) { return o.context * (o.heads * (kN + kV) + kR); }

// One sequence; all sequences of a batch use the same operands.
struct PromptData {
  PromptData(const BenchAttentionOptions& o, int64_t q_len)
      : q(DType::kF32, {q_len, o.heads, kN + kR}),
        kv(DType::kF32, {o.context, o.heads * (kN + kV) + kPad}),
        k_rope(DType::kF32, {o.context, 1, kR}),
        out(DType::kF32, {q_len, o.heads, kV}),
        lse(DType::kF32, {q_len, o.heads}) {
    FillRandom(q, 1.0f, 1);
    FillRandom(kv, 1.0f, 2);
    FillRandom(k_rope, 1.0f, 3);
  }

  MhaOp::Params Params(const BenchAttentionOptions& o) const {
    MhaOp::Params p;
    p.q_nope = q.view().Slice(2, 0, kN);
    p.q_rope = q.view().Slice(2, kN, kN + kR);
    TensorView keys = kv;
    keys.rank = 3;
    keys.shape = {o.context, o.heads, kN + kV};
    keys.stride = {kv.view().stride[0], kN + kV, 1};
    p.k_nope = keys.Slice(2, 0, kN);
    p.v = keys.Slice(2, kN, kN + kV);
    p.k_rope = k_rope;
    p.k_rope.shape[1] = o.heads;
    p.k_rope.stride[1] = 0;
    p.q_begin = o.context - q.view().shape[0];
    p.o = out;
    p.lse = lse;
    p.scale = 1.0f / std::sqrt(static_cast<float>(kN + kR));
    p.arithmetic = o.dtype;
    return p;
  }

  Tensor q, kv, k_rope, out, lse;
};

}  // namespace

Result<JsonOut> BenchDecode(const BenchAttentionOptions& o, const Machine& machine,
                            const JobProgress& progress) {
  const int64_t q_len = o.q_len.value_or(1);
  LATTE_RETURN_IF_ERROR(CheckRanges(o, q_len));
  LATTE_RETURN_IF_ERROR(FlagsInRange({{"--c", o.c, 1, 1024}, {"--r", o.r, 0, 128}}));
  const int64_t rows = o.batch * q_len;
  const int64_t other_bytes = rows * o.heads * (2 * o.c + o.r + 1) * SizeOf(DType::kF32);
  const int64_t row_bytes = o.cache_dtype.RowBytes(o.c, o.r);
  const int64_t cache_bytes = o.batch * o.context * row_bytes;
  LATTE_RETURN_IF_ERROR(CheckBytes("cache, queries and outputs", cache_bytes + other_bytes,
                                   "--batch, --context or --q-len"));
  MeasuredSteps steps(progress, kKernelSteps);
  LATTE_ASSIGN_OR_RETURN(const LatentCache cache, RandomCache(o));
  const Tensor q_latent(DType::kF32, {rows, o.heads, o.c}),
      q_rope(DType::kF32, {rows, o.heads, o.r});
  const Tensor o_latent(DType::kF32, {rows, o.heads, o.c}), lse(DType::kF32, {rows, o.heads});
  FillRandom(q_latent, 1.0f, 3);
  FillRandom(q_rope, 1.0f, 4);
  const std::vector<int32_t> pages = ShuffledPages(0, cache.pages());
  const std::vector<SequenceChunk> sequences =
      EqualChunks(pages, o.batch, q_len, o.context - q_len, MlaPath::kAbsorbed);
  MlaDecodeOp::Params params;
  params.q_latent = q_latent;
  params.q_rope = q_rope;
  params.pages = cache.View(StreamId::kLatent, 0);
  params.sequences = sequences;
  params.o_latent = o_latent;
  params.lse = lse;
  params.scale = 1.0f / std::sqrt(192.0f);  // N + R = 128 + 64
  params.row_format = {o.cache_dtype.kind};
  LATTE_ASSIGN_OR_RETURN(
      const Kernel<MlaDecodeOp>* kernel,
      FindBenchKernel<MlaDecodeOp>(o.kernel, MlaDecodeOp::ShapeOf(params),
                                   fmt::format("a cache of {}", Name(o.cache_dtype)), machine));
  const BenchThreads exec(o.threads, machine);
  const int64_t pairs = PairsOf(o, q_len);
  const KernelWork work{.flops = 2 * o.heads * (2 * o.c + o.r) * pairs,
                        .bytes = pairs * row_bytes + other_bytes,
                        .unique_bytes = cache_bytes + other_bytes,
                        .ceiling = CeilingOf(kernel->isa, ArithmeticOf(o.cache_dtype))};
  const KernelTimes times =
      MeasureKernel("decode", work, exec, steps, [&](int64_t) { kernel->run(params, exec); });
  steps.End();
  JsonOut record{{"bench", "attention"},
                 {"phase", "decode"},
                 {"kernel", kernel->name},
                 {"heads", o.heads},
                 {"c", o.c},
                 {"r", o.r},
                 {"context", o.context},
                 {"batch", o.batch},
                 {"q_len", q_len},
                 {"page_tokens", kBenchPageTokens},
                 {"cache_dtype", Name(o.cache_dtype)},
                 {"threads", o.threads}};
  times.AddTo(work, record);
  record["fraction"] = OrNull(times.fraction);
  record["cache_gbps"] = times.Gbps(cache_bytes);
  times.ceilings.AddTo(record);
  return record;
}

Result<JsonOut> BenchPrefill(const BenchAttentionOptions& o, const Machine& machine,
                             const JobProgress& progress) {
  const int64_t q_len = o.q_len.value_or(o.context);
  LATTE_RETURN_IF_ERROR(CheckRanges(o, q_len));
  const int64_t query_bytes = QueryFloats(o, q_len) * SizeOf(DType::kF32);
  const int64_t key_bytes = KeyFloats(o) * SizeOf(DType::kF32);
  LATTE_RETURN_IF_ERROR(CheckBytes("queries, keys, values and outputs", query_bytes + key_bytes,
                                   "--heads, --context or --q-len"));
  MeasuredSteps steps(progress, kKernelSteps);
  const PromptData data(o, q_len);
  const MhaOp::Params params = data.Params(o);
  LATTE_ASSIGN_OR_RETURN(
      const Kernel<MhaOp>* kernel,
      FindBenchKernel<MhaOp>(o.kernel, MhaOp::ShapeOf(params),
                             fmt::format("arithmetic in {}", Name(o.dtype)), machine));
  const BenchThreads exec(o.threads, machine);
  const int64_t pairs = PairsOf(o, q_len);
  const int64_t widths = o.heads * (kN + kR + kV);  // of a pair
  const KernelWork work{.flops = 2 * widths * pairs,
                        .bytes = pairs * widths * SizeOf(DType::kF32) + o.batch * query_bytes,
                        .unique_bytes = o.batch * (key_bytes + query_bytes),
                        .ceiling = CeilingOf(kernel->isa, o.dtype)};
  const KernelTimes times = MeasureKernel("prefill", work, exec, steps, [&](int64_t) {
    for (int64_t b = 0; b < o.batch; ++b) kernel->run(params, exec);
  });
  steps.End();
  JsonOut record{{"bench", "attention"},
                 {"phase", "prefill"},
                 {"kernel", kernel->name},
                 {"heads", o.heads},
                 {"n", kN},
                 {"r", kR},
                 {"v", kV},
                 {"context", o.context},
                 {"batch", o.batch},
                 {"q_len", q_len},
                 {"dtype", Name(o.dtype)},
                 {"threads", o.threads}};
  times.AddTo(work, record);
  record["fraction"] = OrNull(times.fraction);
  times.ceilings.AddTo(record);
  return record;
}

}  // namespace latte

#include "lab/bench/bench_prefill.h"

#include <cmath>

#include "lab/bench/bench_kernel.h"
#include "src/base/json_out.h"
#include "src/base/range.h"
#include "src/kernels/params/mla.h"

namespace latte {
namespace {

constexpr int64_t kN = 128;
constexpr int64_t kR = 64;
constexpr int64_t kV = 128;
constexpr int64_t kPad = 16;  // floats between keys, as in the layers
constexpr int64_t kMaxPrefillBytes = int64_t{16} << 30;

// Numbers that are read or written once: queries and outputs, and keys and values.
int64_t QueryFloats(const BenchPrefillOptions& o) { return o.q_len * o.heads * (kN + kR + kV + 1); }
int64_t KeyFloats(const BenchPrefillOptions& o) { return o.context * (o.heads * (kN + kV) + kR); }

// One sequence; all sequences of a batch use the same operands.
struct PrefillData {
  explicit PrefillData(const BenchPrefillOptions& o)
      : q(DType::kF32, {o.q_len, o.heads, kN + kR}),
        kv(DType::kF32, {o.context, o.heads * (kN + kV) + kPad}),
        k_rope(DType::kF32, {o.context, 1, kR}),
        out(DType::kF32, {o.q_len, o.heads, kV}),
        lse(DType::kF32, {o.q_len, o.heads}) {
    for (const TensorView& t : {q.view(), kv.view(), k_rope.view()}) FillNoise(t);
  }

  MhaOp::Params Params(const BenchPrefillOptions& o) const {
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
    p.q_begin = o.context - o.q_len;
    p.o = out;
    p.lse = lse;
    p.scale = 1.0f / std::sqrt(static_cast<float>(kN + kR));
    p.arithmetic = o.dtype;
    return p;
  }

  Tensor q, kv, k_rope, out, lse;
};

}  // namespace

Status BenchPrefillOptions::Validate() const {
  LATTE_RETURN_IF_ERROR(FlagInRange("--heads", heads, 1, 1024));
  LATTE_RETURN_IF_ERROR(FlagInRange("--context", context, 1, 1 << 20));
  LATTE_RETURN_IF_ERROR(FlagInRange("--batch", batch, 1, 1024));
  LATTE_RETURN_IF_ERROR(FlagInRange("--q-len", q_len, 1, context));
  LATTE_RETURN_IF_ERROR(FlagInRange("--threads", threads, 1, 1024));
  const int64_t bytes = (QueryFloats(*this) + KeyFloats(*this)) * SizeOf(DType::kF32);
  if (bytes <= kMaxPrefillBytes) return {};
  return Exhausted(
      fmt::format("queries, keys, values and outputs: expected at most {} bytes, found {}; lower "
                  "--heads, --context or --q-len",
                  kMaxPrefillBytes, bytes));
}

Result<JsonOut> BenchPrefill(const BenchPrefillOptions& o, const Machine& machine,
                             const JobProgress& progress) {
  LATTE_RETURN_IF_ERROR(o.Validate());
  MeasuredSteps steps(progress, kBenchSteps);
  const PrefillData data(o);
  const MhaOp::Params params = data.Params(o);
  LATTE_ASSIGN_OR_RETURN(
      const Kernel<MhaOp>* row,
      FindBenchRow<MhaOp>(o.kernel, MhaOp::ShapeOf(params),
                          fmt::format("arithmetic in {}", Name(o.dtype)), machine));
  ThreadPool threads(o.threads);
  const Exec exec{&threads, &machine};
  // Token i of a sequence attends to all but the q_len − 1 − i newest keys.
  const int64_t pairs = o.batch * (o.q_len * o.context - o.q_len * (o.q_len - 1) / 2);
  const int64_t flops = 2 * o.heads * (kN + kR + kV) * pairs;
  const int64_t query_bytes = o.batch * QueryFloats(o) * SizeOf(DType::kF32);
  const Ceiling ceiling = CeilingOf(row->isa, o.dtype);
  const BenchSamples samples = MeasureBench(ceiling, static_cast<double>(flops), exec, steps, [&] {
    for (int64_t b = 0; b < o.batch; ++b) row->run(params, exec);
  });
  const double seconds = Median(samples.seconds);
  JsonOut record{
      {"bench", "attention"},
      {"phase", "prefill"},
      {"kernel", row->name},
      {"heads", o.heads},
      {"n", kN},
      {"r", kR},
      {"v", kV},
      {"context", o.context},
      {"batch", o.batch},
      {"q_len", o.q_len},
      {"dtype", Name(o.dtype)},
      {"threads", o.threads},
      {"runs", kBenchRuns},
      {"flops", flops},
      {"bytes", pairs * o.heads * (kN + kR + kV) * SizeOf(DType::kF32) + query_bytes},
      {"unique_bytes", o.batch * KeyFloats(o) * SizeOf(DType::kF32) + query_bytes},
      {"us", seconds * 1e6},
      {"gflops", static_cast<double>(flops) * 1e-9 / seconds},
      {"peak_gflops", OrNull(samples.ceilings.Median(ceiling))},
      {"fraction", OrNull(Median(samples.fraction))},
  };
  samples.ceilings.AddTo(record);
  return record;
}

}  // namespace latte

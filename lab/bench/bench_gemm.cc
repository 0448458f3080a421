#include "lab/bench/bench_gemm.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "lab/bench/harness.h"
#include "lab/bench/random_data.h"
#include "lab/synth/synth.h"
#include "src/base/json_out.h"
#include "src/base/math.h"
#include "src/base/random.h"
#include "src/checkpoint/config/model_config.h"
#include "src/kernels/params/gemm.h"

namespace latte {
namespace {

constexpr int64_t kPoolBytes = int64_t{512} << 20;
constexpr int64_t kMaxGemmBytes = int64_t{16} << 30;
constexpr int64_t kMemoryRows = 64;  // up to this M, weights are read from memory
constexpr int64_t kGroup = 128;      // group size of int8 activations

// The formats of --dtype and --act.
struct Format {
  DType w = DType::kBF16, x = DType::kBF16;
  int64_t rows = 0, columns = 0;  // of a scale group; columns 0: all; rows 0: no scales
};

// The type of blocks with this name, as GGUF files call it.
std::optional<DType> BlocksNamed(const std::string& name) {
  for (int i = 0; i < static_cast<int>(std::ssize(kDTypes)); ++i)
    if (IsBlocks(static_cast<DType>(i)) && name == InfoOf(static_cast<DType>(i)).stored)
      return static_cast<DType>(i);
  return std::nullopt;
}

Result<Format> FormatOf(const BenchWeights& o) {
  constexpr std::pair<std::string_view, Format> kWeights[] = {
      {"f32", {DType::kF32, DType::kF32}},      {"f16", {DType::kF16, DType::kBF16}},
      {"bf16", {DType::kBF16, DType::kBF16}},   {"fp8", {DType::kF8E4M3, DType::kBF16, 128, 128}},
      {"int8", {DType::kI8, DType::kI8, 1, 0}}, {"int4", {DType::kU4, DType::kI8, 1, 32}}};
  constexpr std::pair<std::string_view, DType> kActivations[] = {
      {"f32", DType::kF32}, {"bf16", DType::kBF16}, {"int8", DType::kI8}};
  const auto named = [](const std::string& name) {
    return [&name](const auto& entry) { return entry.first == name; };
  };
  Format out;
  const auto w = std::find_if(std::begin(kWeights), std::end(kWeights), named(o.dtype));
  if (w != std::end(kWeights))
    out = w->second;
  else if (const std::optional<DType> blocks = BlocksNamed(o.dtype))
    out = {*blocks, DType::kBF16};
  else
    return InvalidArgument(fmt::format(
        "--dtype: expected f32, f16, bf16, fp8, int8, int4 or a type of GGUF blocks, as Q4_K, "
        "found '{}'",
        o.dtype));
  if (!o.act.empty()) {
    const auto x = std::find_if(std::begin(kActivations), std::end(kActivations), named(o.act));
    if (x == std::end(kActivations))
      return InvalidArgument(fmt::format("--act: expected f32, bf16 or int8, found '{}'", o.act));
    out.x = x->second;
  }
  if (IsBlocks(out.w) && !IsPlain(out.x))
    return InvalidArgument(
        fmt::format("--act: expected f32 or bf16 with {}, found {}", o.dtype, o.act));
  LATTE_RETURN_IF_ERROR(FlagInRange("--threads", o.threads, 1, 1024));
  return out;
}

int64_t WeightBytes(const Format& f, int64_t n, int64_t k) {
  int64_t bytes = n * CeilDiv(k, ValuesPerElement(f.w)) * SizeOf(f.w);
  if (f.rows > 0) bytes += CeilDiv(n, f.rows) * (f.columns == 0 ? 1 : CeilDiv(k, f.columns)) * 4;
  return bytes;
}

struct GemmWork {
  int64_t flops = 0, weight_bytes = 0, other_bytes = 0;

  int64_t bytes() const { return weight_bytes + other_bytes; }
  void Add(const Format& f, int64_t b, int64_t m, int64_t n, int64_t k) {
    flops += 2 * b * m * n * k;
    weight_bytes += b * WeightBytes(f, n, k);
    other_bytes += b * m * (k * SizeOf(f.x) + n * SizeOf(DType::kF32));
  }
};

// Weights with scales, and activations, for the parts of calls.
class Source {
 public:
  Source(const Format& format, int64_t weight_bytes, int64_t other_bytes)
      : format_(format), weights_(weight_bytes), others_(std::max<int64_t>(other_bytes, 1 << 20)) {}

  TensorView Weight(int64_t b, int64_t n, int64_t k) { return weights_.Take(format_.w, b, n, k); }
  BlockScale Scale(int64_t b, int64_t n, int64_t k) {
    BlockScale out;
    if (format_.rows == 0) return out;
    out.rows = format_.rows;
    out.columns = format_.columns == 0 ? RoundUp(k, 2) : format_.columns;
    out.batch_rows = n;
    out.scale = weights_.Take(DType::kF32, 1, CeilDiv(b * n, out.rows), CeilDiv(k, out.columns));
    out.scale.rank = 2;
    std::copy_n(out.scale.shape.begin() + 1, 2, out.scale.shape.begin());
    std::copy_n(out.scale.stride.begin() + 1, 2, out.scale.stride.begin());
    return out;
  }
  TensorView Rows(DType type, int64_t b, int64_t m, int64_t k) {
    return others_.Take(type, b, m, k);
  }
  GemmProblem Part(int64_t b, int64_t m, int64_t n, int64_t k, bool gated = false) {
    GemmProblem p = PartWithoutWeight(b, m, n, k);
    p.w = Weight(b, n, k);
    p.w_scale = Scale(b, n, k);
    if (gated) {
      p.gate = Weight(b, n, k);
      p.gate_scale = Scale(b, n, k);
    }
    return p;
  }
  GemmProblem PartWithoutWeight(int64_t b, int64_t m, int64_t n, int64_t k) {
    GemmProblem p;
    p.x = Rows(format_.x, b, m, k);
    p.y = Rows(DType::kF32, b, m, n);
    if (format_.x == DType::kI8) {
      p.x_group = kGroup;
      p.x_scale = Rows(DType::kF32, b, m, CeilDiv(k, kGroup));
    }
    return p;
  }

 private:
  Format format_;
  RandomOperands weights_, others_;
};

Result<const Kernel<GemmOp>*> FindRow(const std::string& name, const GemmOp::Shape& shape,
                                      const Machine& machine) {
  return FindBenchKernel<GemmOp>(name, shape,
                                 fmt::format("{} times {}", Name(shape.x), Name(shape.w)), machine);
}

// What all products of a bench share.
struct Bench {
  const Exec& exec;
  MeasuredSteps& steps;
};

// Times `call(i)` and adds the figures to the record, which names the product.
void MeasureGemm(const std::function<void(int64_t)>& call, const GemmWork& work, Ceiling ceiling,
                 const Bench& bench, JsonOut& record) {
  const KernelWork all{work.flops, work.bytes(), work.bytes(), ceiling, /*reads_memory=*/true};
  const std::string name = record.value("product", record.value("bench", ""));
  const KernelTimes times = MeasureKernel(name, all, bench.exec, bench.steps, call);
  times.AddTo(all, record);
  record["weight_gbps"] = times.Gbps(work.weight_bytes);
  record["fraction"] = times.fraction;
  times.ceilings.AddTo(record);
}

Status CheckMemory(const GemmWork& work) {
  if (work.bytes() <= kMaxGemmBytes) return {};
  return Exhausted(
      fmt::format("weights, activations and outputs: expected at most {} bytes, found {}; lower "
                  "--m, --n or --k",
                  kMaxGemmBytes, work.bytes()));
}

// A record of calls of `parts`, repeated in turn.
Result<JsonOut> MeasureParts(const std::string& name, const std::vector<GemmProblem>& parts,
                             size_t parts_per_call, const GemmWork& work, const BenchWeights& o,
                             const Bench& bench) {
  const std::span<const GemmProblem> all(parts);
  const GemmOp::Shape shape = GemmOp::ShapeOf({all.first(parts_per_call)});
  LATTE_ASSIGN_OR_RETURN(const Kernel<GemmOp>* row, FindRow(o.kernel, shape, *bench.exec.machine));
  JsonOut record{{"product", name}, {"kernel", row->name}};
  const size_t calls = parts.size() / parts_per_call;
  MeasureGemm(
      [&](int64_t i) {
        const size_t at = static_cast<size_t>(i) % calls * parts_per_call;
        row->run({all.subspan(at, parts_per_call)}, bench.exec);
      },
      work, CeilingOf(row->isa, shape.x), bench, record);
  return record;
}

int64_t Copies(int64_t m, int64_t weight_bytes) {
  return m <= kMemoryRows ? CeilDiv(kPoolBytes, weight_bytes) : 1;
}

JsonOut GemmRecord(std::string_view bench, const BenchWeights& o, const Format& f) {
  return {{"bench", bench}, {"dtype", o.dtype}, {"act", Name(f.x)}, {"threads", o.threads}};
}

Result<ModelConfig> ShapeNamed(const std::string& name) {
  if (name != "v2-lite" && name != "v3")
    return InvalidArgument(fmt::format("--shape: expected v2-lite or v3, found '{}'", name));
  LATTE_ASSIGN_OR_RETURN(const JsonOut config, SynthConfig({.shape = name}));
  LATTE_ASSIGN_OR_RETURN(const Json parsed, Json::Parse(Dump(config), name));
  return ParseModelConfig(parsed);
}

struct Call {
  std::string name;
  std::vector<std::array<int64_t, 2>> sizes;  // N and K of each part
};

// A record of a call whose parts share no operands.
Result<JsonOut> MeasureCall(const Call& call, int64_t m, const Format& f, const BenchWeights& o,
                            const Bench& bench) {
  GemmWork work;
  for (const auto& [n, k] : call.sizes) work.Add(f, 1, m, n, k);
  const int64_t copies = Copies(m, work.weight_bytes);
  // A few more bytes for alignment.
  Source source(f, copies * work.weight_bytes + (1 << 20), 4 * work.other_bytes);
  std::vector<GemmProblem> parts;
  for (int64_t i = 0; i < copies; ++i)
    for (const auto& [n, k] : call.sizes) parts.push_back(source.Part(1, m, n, k));
  return MeasureParts(call.name, parts, call.sizes.size(), work, o, bench);
}

// The products q_nope·W_UK and o·W_UV. Queries are never rounded to 8 bits.
Result<std::vector<JsonOut>> MeasureHeads(const MlaDims& s, int64_t m, const Format& f,
                                          const BenchWeights& o, const Bench& bench) {
  const DType query = f.x == DType::kI8 ? DType::kBF16 : f.x;
  GemmWork whole, up, down;
  whole.Add(f, 1, m, s.h * (s.n + s.v), s.c);
  up.Add({f.w, query, f.rows, f.columns}, s.h, m, s.n, s.c);
  down.Add(f, s.h, m, s.v, s.c);
  const int64_t copies = Copies(m, whole.weight_bytes);
  Source source(f, copies * whole.weight_bytes + (1 << 20), 4 * s.h * m * (s.c + s.n + s.v) * 4);
  const TensorView q = source.Rows(query, s.h, m, s.n);
  const TensorView q_latent = source.Rows(DType::kF32, s.h, m, s.c);
  GemmProblem values = source.PartWithoutWeight(s.h, m, s.v, s.c);
  std::vector<GemmTOp::Params> w_uk;
  std::vector<GemmProblem> w_uv;
  for (int64_t i = 0; i < copies; ++i) {
    const TensorView kv_b = source.Weight(s.h, s.n + s.v, s.c);
    const BlockScale scale = source.Scale(s.h, s.n + s.v, s.c);
    w_uk.push_back({q, kv_b.Slice(1, 0, s.n), q_latent, scale});
    values.w = kv_b.Slice(1, s.n, s.n + s.v);
    values.w_scale = scale;
    values.w_scale.row_begin = s.n;
    w_uv.push_back(values);
  }
  BenchWeights any = o;
  any.kernel.clear();  // the two products are different ops
  const GemmTOp::Shape shape = GemmTOp::ShapeOf(w_uk[0]);
  const Kernel<GemmTOp>& row = Select<GemmTOp>(shape, *bench.exec.machine);
  JsonOut record{{"product", "q_nope·W_UK"}, {"kernel", row.name}};
  MeasureGemm([&](int64_t i) { row.run(w_uk[static_cast<size_t>(i) % w_uk.size()], bench.exec); },
              up, CeilingOf(row.isa, DType::kF32), bench, record);
  LATTE_ASSIGN_OR_RETURN(JsonOut of_values, MeasureParts("o·W_UV", w_uv, 1, down, any, bench));
  return std::vector<JsonOut>{std::move(record), std::move(of_values)};
}

// The number of tokens of each expert if each of m tokens chooses `chosen` different experts.
std::vector<int64_t> TokensOfExperts(const MoeDims& s, int64_t m, double skew) {
  std::vector<double> weight;
  for (int64_t e = 0; e < s.experts; ++e)
    weight.push_back(std::pow(static_cast<double>(e + 1), -skew));
  std::vector<int64_t> out(weight.size(), 0);
  Random random(1);
  for (int64_t t = 0; t < m; ++t) {
    std::vector<double> left = weight;
    for (int64_t k = 0; k < s.chosen; ++k) {
      const double sum = std::accumulate(left.begin(), left.end(), 0.0);
      double at = sum * static_cast<double>(random.Below(1 << 24)) * 0x1p-24;
      size_t e = 0;
      while (e + 1 < left.size() && (left[e] == 0 || at >= left[e])) at -= left[e++];
      left[e] = 0;
      ++out[e];
    }
  }
  return out;
}

}  // namespace

Result<JsonOut> BenchGemm(const BenchGemmOptions& o, const Machine& machine,
                          const JobProgress& progress) {
  LATTE_ASSIGN_OR_RETURN(const Format f, FormatOf(o));
  LATTE_RETURN_IF_ERROR(
      FlagsInRange({{"--m", o.m, 1, 1 << 16}, {"--n", o.n, 1, 1 << 18}, {"--k", o.k, 1, 1 << 18}}));
  if (o.k % ValuesPerElement(f.w) != 0 && IsBlocks(f.w))
    return InvalidArgument(
        fmt::format("--k: expected a multiple of {}, the values of a block, found {}",
                    ValuesPerElement(f.w), o.k));
  GemmWork work;
  work.Add(f, 1, o.m, o.n, o.k);
  LATTE_RETURN_IF_ERROR(CheckMemory(work));
  MeasuredSteps steps(progress, kKernelSteps);
  const BenchThreads exec(o.threads, machine);
  LATTE_ASSIGN_OR_RETURN(const JsonOut measured,
                         MeasureCall({o.name, {{o.n, o.k}}}, o.m, f, o, {exec, steps}));
  steps.End();
  JsonOut record = GemmRecord(o.name, o, f);
  record["m"] = o.m;
  record["n"] = o.n;
  record["k"] = o.k;
  record.update(measured);
  record.erase("product");
  return record;
}

Result<JsonOut> BenchProjections(const BenchShapeOptions& o, const Machine& machine,
                                 const JobProgress& progress) {
  LATTE_ASSIGN_OR_RETURN(const Format f, FormatOf(o));
  if (IsBlocks(f.w))
    return Unsupported(
        fmt::format("--dtype: expected another type, found {}: kv_b is not multiplied in blocks; "
                    "`latte bench gemm` measures them",
                    o.dtype));
  LATTE_ASSIGN_OR_RETURN(const ModelConfig config, ShapeNamed(o.shape));
  const MlaDims& s = config.mla;
  LATTE_RETURN_IF_ERROR(FlagInRange("--m", o.m, 1, 1 << 16));
  const BenchThreads exec(o.threads, machine);
  const int64_t q_rows = s.h * s.qk();
  JsonOut products = JsonOut::array();
  std::vector<Call> calls = {{s.cq > 0 ? "q_a and kv_a" : "q and kv_a",
                              {{s.cq > 0 ? s.cq : q_rows, s.d}, {s.latent(), s.d}}}};
  if (s.cq > 0) calls.push_back({"q_b", {{q_rows, s.cq}}});
  constexpr int64_t kOfHeads = 2;  // products of MeasureHeads
  MeasuredSteps steps(progress, kKernelSteps * (std::ssize(calls) + kOfHeads));
  const Bench bench{exec, steps};
  for (const Call& call : calls) {
    LATTE_ASSIGN_OR_RETURN(JsonOut record, MeasureCall(call, o.m, f, o, bench));
    products.push_back(std::move(record));
  }
  LATTE_ASSIGN_OR_RETURN(std::vector<JsonOut> heads, MeasureHeads(s, o.m, f, o, bench));
  steps.End();
  for (JsonOut& record : heads) products.push_back(std::move(record));
  JsonOut record = GemmRecord("projections", o, f);
  record["shape"] = o.shape;
  record["m"] = o.m;
  record["products"] = std::move(products);
  return record;
}

Result<JsonOut> BenchMoe(const BenchShapeOptions& o, const Machine& machine,
                         const JobProgress& progress) {
  LATTE_ASSIGN_OR_RETURN(const Format f, FormatOf(o));
  LATTE_ASSIGN_OR_RETURN(const ModelConfig config, ShapeNamed(o.shape));
  const MoeDims& s = config.moe;
  const int64_t d = config.mla.d;
  LATTE_RETURN_IF_ERROR(FlagInRange("--m", o.m, 1, 1 << 16));
  LATTE_RETURN_IF_ERROR(FlagInRange("--skew", o.skew, 0, 4));
  MeasuredSteps steps(progress, kKernelSteps);
  std::vector<int64_t> rows = TokensOfExperts(s, o.m, o.skew);
  std::erase(rows, 0);
  const auto touched = static_cast<int64_t>(rows.size());
  GemmWork work;
  for (const int64_t m : rows) {
    work.Add(f, 1, m, 2 * s.width, d);
    work.Add(f, 1, m, d, s.width);
  }
  work.Add(f, 1, o.m, 2 * s.shared * s.width, d);
  work.Add(f, 1, o.m, d, s.shared * s.width);
  Source source(f, std::clamp(2 * work.weight_bytes, kPoolBytes, 2 * kPoolBytes),
                2 * work.other_bytes);
  // The shared experts come first, as in MoE layers.
  std::vector<GemmProblem> up = {source.Part(1, o.m, s.shared * s.width, d, /*gated=*/true)};
  std::vector<GemmProblem> down = {source.Part(1, o.m, d, s.shared * s.width)};
  for (const int64_t m : rows) {
    up.push_back(source.Part(1, m, s.width, d, /*gated=*/true));
    down.push_back(source.Part(1, m, d, s.width));
  }

  const BenchThreads exec(o.threads, machine);
  const GemmOp::Shape shape = GemmOp::ShapeOf({up});
  LATTE_ASSIGN_OR_RETURN(const Kernel<GemmOp>* row, FindRow(o.kernel, shape, machine));
  JsonOut record = GemmRecord("moe", o, f);
  record["shape"] = o.shape;
  record["m"] = o.m;
  record["skew"] = o.skew;
  record["kernel"] = row->name;
  record["touched_experts"] = touched;
  record["largest_expert_rows"] = *std::max_element(rows.begin(), rows.end());
  MeasureGemm(
      [&](int64_t) {
        row->run({up}, exec);
        row->run({down}, exec);
      },
      work, CeilingOf(row->isa, f.x), {exec, steps}, record);
  steps.End();
  return record;
}

}  // namespace latte

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/kernels/ref/ref.h"
#include "src/tensor/dtype.h"

namespace latte::ref {
namespace {

constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

void Store(std::byte* row, DType dtype, int64_t i, float value) {
  if (dtype == DType::kF32)
    reinterpret_cast<float*>(row)[i] = value;
  else
    reinterpret_cast<uint16_t*>(row)[i] = FloatTo16(value, dtype);
}

const std::byte* PageRow(const TensorView& pages, std::span<const int32_t> page_table,
                         int64_t key) {
  const int64_t page_tokens = pages.shape[1];
  const int64_t page = page_table[static_cast<size_t>(key / page_tokens)];
  const int64_t row = page * page_tokens + key % page_tokens;
  return pages.data + row * pages.shape[2] * SizeOf(pages.dtype);
}

const float* Head(const TensorView& t, int64_t i, int64_t h) {
  return t.Ptr<float>() + i * t.stride[0] + h * t.stride[1];
}

// Row i of head h.
TensorView OneHead(const TensorView& m) {
  TensorView out = m;
  out.rank = 3;
  out.shape = {m.shape[0], 1, m.shape[1]};
  out.stride = {m.stride[0], m.shape[1], m.stride[1]};
  return out;
}

double Dot(const float* a, const float* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// Turns scores into probabilities in place and returns the log of their sum of exponentials.
double Softmax(std::span<double> scores) {
  const double max = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& s : scores) sum += s = std::exp(s - max);
  for (double& s : scores) s /= sum;
  return max + std::log(sum);
}

// A cached row as f32.
void LoadRow(const TensorView& pages, CacheRowFormat row_format,
             std::span<const int32_t> page_table, int64_t key, int64_t c, int64_t width,
             float* to) {
  const std::byte* row = PageRow(pages, page_table, key);
  if (row_format.kind != CacheFormat::kPlain)
    return DequantiseRow(row_format, row, c, width - c, to);
  for (int64_t i = 0; i < width; ++i) to[i] = LoadElement(row, pages.dtype, i);
}

// Absorbed attention of one (token, head) to `count` keys [count, C+R].
void DecodeQuery(const MlaDecodeOp::Params& p, const float* keys, int64_t count, int64_t t,
                 int64_t h) {
  const auto shape = MlaDecodeOp::ShapeOf(p);
  const int64_t width = shape.c + shape.r;
  float* o = p.o_latent.Ptr<float>() + (t * shape.h + h) * shape.c;
  float* lse_out = p.lse.empty() ? nullptr : p.lse.Ptr<float>() + t * shape.h + h;
  if (count == 0) {
    std::fill_n(o, shape.c, 0.0f);
    if (lse_out != nullptr) *lse_out = static_cast<float>(kMinusInf);
    return;
  }
  std::vector<double> scores(static_cast<size_t>(count));
  for (int64_t j = 0; j < count; ++j)
    scores[static_cast<size_t>(j)] =
        static_cast<double>(p.scale) *
        (Dot(Head(p.q_latent, t, h), keys + j * width, shape.c) +
         Dot(Head(p.q_rope, t, h), keys + j * width + shape.c, shape.r));
  const double lse = Softmax(scores);
  std::vector<double> out(static_cast<size_t>(shape.c), 0.0);
  for (int64_t j = 0; j < count; ++j)
    for (int64_t c = 0; c < shape.c; ++c)
      out[static_cast<size_t>(c)] +=
          scores[static_cast<size_t>(j)] * static_cast<double>(keys[j * width + c]);
  for (int64_t c = 0; c < shape.c; ++c) o[c] = static_cast<float>(out[static_cast<size_t>(c)]);
  if (lse_out != nullptr) *lse_out = static_cast<float>(lse);
}

// The same, not normalised.
void DecodeSplit(const MlaDecodeOp::Params& p, const float* keys, int64_t count, int64_t t,
                 int64_t h, int64_t to) {
  const auto shape = MlaDecodeOp::ShapeOf(p);
  const int64_t width = shape.c + shape.r;
  std::vector<double> scores(static_cast<size_t>(count));
  double max = kMinusInf;
  for (int64_t j = 0; j < count; ++j) {
    const double score = static_cast<double>(p.scale) *
                         (Dot(Head(p.q_latent, t, h), keys + j * width, shape.c) +
                          Dot(Head(p.q_rope, t, h), keys + j * width + shape.c, shape.r));
    scores[static_cast<size_t>(j)] = score;
    max = std::max(max, score);
  }
  double sum = 0;
  for (double& s : scores) sum += s = std::exp(s - max);
  p.splits.max.Ptr<float>()[to] = static_cast<float>(max);
  p.splits.sum.Ptr<float>()[to] = static_cast<float>(sum);
  float* const o = p.splits.o.Ptr<float>() + to * shape.c;
  for (int64_t c = 0; c < shape.c; ++c) {
    double out = 0;
    for (int64_t j = 0; j < count; ++j)
      out += scores[static_cast<size_t>(j)] * static_cast<double>(keys[j * width + c]);
    o[c] = static_cast<float>(out);
  }
}

// The splits of the owner in one sequence. keys: of the owner. first: where its first row (token,
// head) goes.
void DecodeSplits(const MlaDecodeOp::Params& p, const SequenceChunk& seq, const float* keys,
                  int64_t first, const Exec& exec) {
  const auto shape = MlaDecodeOp::ShapeOf(p);
  const int64_t rows = seq.count * shape.h;
  exec.threads->ParallelFor(p.owner.SplitsOf(seq.total_len()) * rows, [&](int64_t task) {
    const int64_t split = task / rows;
    const int64_t i = task % rows / shape.h;
    const int64_t begin = p.owner.Split(split) * kSplitKeys;
    const int64_t visible = std::clamp<int64_t>(seq.cached_len + i + 1 - begin, 0, kSplitKeys);
    DecodeSplit(p, keys + split * kSplitKeys * (shape.c + shape.r), visible,
                MlaDecodeOp::FirstRow(p, seq) + i, task % shape.h, first + task);
  });
}

// All heads of new token i of a sequence, which attends to the keys in its list.
void DecodeListed(const MlaDecodeOp::Params& p, const SequenceChunk& seq, int64_t i) {
  const auto shape = MlaDecodeOp::ShapeOf(p);
  const int64_t width = shape.c + shape.r;
  const int64_t t = MlaDecodeOp::FirstRow(p, seq) + i;
  const std::span<const int32_t> list = ListOf(p.positions, t, seq.cached_len + i);
  std::vector<float> keys(list.size() * static_cast<size_t>(width));
  for (size_t j = 0; j < list.size(); ++j)
    LoadRow(p.pages, p.row_format, seq.pages, list[j], shape.c, width,
            keys.data() + j * static_cast<size_t>(width));
  for (int64_t h = 0; h < shape.h; ++h) DecodeQuery(p, keys.data(), std::ssize(list), t, h);
}

// Expanded attention of one (token, head) to the first `keys` keys of the call.
void MhaRow(const MhaOp::Params& p, int64_t keys, int64_t t, int64_t h) {
  const auto shape = MhaOp::ShapeOf(p);
  float* o = p.o.Ptr<float>() + (t * shape.h + h) * shape.v;
  std::fill_n(o, shape.v, 0.0f);
  float& lse = p.lse.Ptr<float>()[t * shape.h + h];
  lse = static_cast<float>(kMinusInf);
  if (keys <= 0) return;
  std::vector<double> scores(static_cast<size_t>(keys));
  for (int64_t j = 0; j < keys; ++j)
    scores[static_cast<size_t>(j)] =
        static_cast<double>(p.scale) * (Dot(Head(p.q_nope, t, h), Head(p.k_nope, j, h), shape.n) +
                                        Dot(Head(p.q_rope, t, h), Head(p.k_rope, j, h), shape.r));
  lse = static_cast<float>(Softmax(scores));
  std::vector<double> out(static_cast<size_t>(shape.v), 0.0);
  for (int64_t j = 0; j < keys; ++j) {
    const float* v = Head(p.v, j, h);
    for (int64_t i = 0; i < shape.v; ++i)
      out[static_cast<size_t>(i)] += scores[static_cast<size_t>(j)] * static_cast<double>(v[i]);
  }
  for (int64_t i = 0; i < shape.v; ++i) o[i] = static_cast<float>(out[static_cast<size_t>(i)]);
}

}  // namespace

void Append(const AppendOp::Params& p, const Exec& exec) {
  const int64_t width = p.pages.shape[2];
  const int64_t first = p.first.shape[1];
  exec.threads->ParallelFor(p.first.shape[0], [&](int64_t t) {
    if (p.slots[static_cast<size_t>(t)] < 0) return;
    std::byte* row = p.pages.data + p.slots[static_cast<size_t>(t)] * width * SizeOf(p.pages.dtype);
    const float* second = p.second.empty() ? nullptr : p.second.Row<float>(t);
    if (p.row_format.kind != CacheFormat::kPlain)
      return QuantiseRow(p.row_format, p.first.Row<float>(t), first, second,
                         AppendOp::ShapeOf(p).second, row);
    for (int64_t i = 0; i < first; ++i) Store(row, p.pages.dtype, i, p.first.Row<float>(t)[i]);
    for (int64_t i = first; i < width; ++i) Store(row, p.pages.dtype, i, second[i - first]);
  });
}

void NormRopeAppend(const NormRopeAppendOp::Params& p, const Exec& exec) {
  const NormRopeAppendOp::Shape s = NormRopeAppendOp::ShapeOf(p);
  const TensorView c_kv = p.latent.Slice(1, 0, s.c);
  const TensorView k_rope = p.latent.Slice(1, s.c, s.c + s.r);
  RmsNorm({c_kv, p.w, c_kv, p.eps}, exec);
  if (!p.cos.empty()) {
    Rope({OneHead(k_rope), p.cos, p.sin, p.interleaved}, exec);
    Rope({p.q_rope, p.cos, p.sin, p.interleaved}, exec);
  }
  if (!p.pages.empty()) Append({c_kv, k_rope, p.pages, p.slots, p.row_format}, exec);
}

void GatherPages(const GatherPagesOp::Params& p, const Exec& exec) {
  exec.threads->ParallelFor(p.y.shape[0], [&](int64_t s) {
    LoadRow(p.pages, p.row_format, p.page_table, p.key_begin + s, p.c, p.y.shape[1],
            p.y.Row<float>(s));
  });
}

void MlaDecode(const MlaDecodeOp::Params& p, const Exec& exec) {
  const MlaDecodeOp::Shape shape = MlaDecodeOp::ShapeOf(p);
  const int64_t width = shape.c + shape.r;
  LATTE_CHECK(p.positions.empty() || p.owner.count == 1, "lists of positions with owners of keys");
  int64_t split_rows = 0;
  for (const SequenceChunk& seq : p.sequences) {
    if (!p.positions.empty()) {
      exec.threads->ParallelFor(seq.count, [&](int64_t i) { DecodeListed(p, seq, i); });
      continue;
    }
    const int64_t owned = p.owner.KeysOf(seq.total_len());
    std::vector<float> keys(static_cast<size_t>(owned * width));
    exec.threads->ParallelFor(owned, [&](int64_t j) {
      const int64_t key = p.owner.Split(j / kSplitKeys) * kSplitKeys + j % kSplitKeys;
      LoadRow(p.pages, p.row_format, seq.pages, key, shape.c, width, keys.data() + j * width);
    });
    if (!p.splits.o.empty()) {
      DecodeSplits(p, seq, keys.data(), split_rows * shape.h, exec);
      split_rows += p.owner.SplitsOf(seq.total_len()) * seq.count;
      continue;
    }
    exec.threads->ParallelFor(seq.count * shape.h, [&](int64_t task) {
      const int64_t i = task / shape.h;
      DecodeQuery(p, keys.data(), p.owner.KeysOf(seq.total_len() - seq.count + i + 1),
                  MlaDecodeOp::FirstRow(p, seq) + i, task % shape.h);
    });
  }
}

void MergeSplits(const MergeSplitsOp::Params& p, const Exec& exec) {
  const MergeSplitsOp::Shape s = MergeSplitsOp::ShapeOf(p);
  exec.threads->ParallelFor(s.m, [&](int64_t m) {
    const auto max_of = [m](const SplitResults& one) {
      return static_cast<double>(one.max.Ptr<float>()[m]);
    };
    double max = kMinusInf;
    for (const SplitResults& one : p.splits) max = std::max(max, max_of(one));
    std::vector<double> o(static_cast<size_t>(s.c));
    double sum = 0;
    for (const SplitResults& one : p.splits) {
      const auto own = static_cast<double>(one.sum.Ptr<float>()[m]);
      if (own == 0) continue;
      const double factor = std::exp(max_of(one) - max);
      sum += factor * own;
      for (int64_t c = 0; c < s.c; ++c)
        o[static_cast<size_t>(c)] += factor * static_cast<double>(one.o.Ptr<float>()[m * s.c + c]);
    }
    for (int64_t c = 0; c < s.c; ++c)
      p.o.Row<float>(m)[c] = static_cast<float>(sum == 0 ? 0 : o[static_cast<size_t>(c)] / sum);
    if (!p.lse.empty()) p.lse.Ptr<float>()[m] = static_cast<float>(max + std::log(sum));
  });
}

void Mha(const MhaOp::Params& p, const Exec& exec) {
  const auto shape = MhaOp::ShapeOf(p);
  exec.threads->ParallelFor(shape.t * shape.h, [&](int64_t task) {
    const int64_t t = task / shape.h;
    const int64_t visible = std::clamp<int64_t>(p.q_begin + t + 1 - p.key_begin, 0, shape.s);
    MhaRow(p, visible, t, task % shape.h);
  });
}

void LseMerge(const LseMergeOp::Params& p, const Exec& exec) {
  const int64_t width = p.o.shape[1];
  exec.threads->ParallelFor(p.o.shape[0], [&](int64_t m) {
    float& lse = p.lse.Ptr<float>()[m];
    const double a = static_cast<double>(lse);
    const double b = static_cast<double>(p.lse_b.Ptr<float>()[m]);
    const bool has_a = std::isfinite(a);
    const bool has_b = std::isfinite(b);
    float* o = p.o.Row<float>(m);
    const float* o_b = p.o_b.Row<float>(m);
    if (!has_b) {
      if (has_a) return;
      std::fill_n(o, width, 0.0f);
      lse = static_cast<float>(kMinusInf);
      return;
    }
    if (!has_a) {
      std::copy_n(o_b, width, o);
      lse = static_cast<float>(b);
      return;
    }
    const double max = std::max(a, b);
    const double sum = std::exp(a - max) + std::exp(b - max);
    const double weight_a = std::exp(a - max) / sum;
    const double weight_b = std::exp(b - max) / sum;
    for (int64_t i = 0; i < width; ++i)
      o[i] = static_cast<float>(weight_a * static_cast<double>(o[i]) +
                                weight_b * static_cast<double>(o_b[i]));
    lse = static_cast<float>(max + std::log(sum));
  });
}

}  // namespace latte::ref

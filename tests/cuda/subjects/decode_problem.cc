#include "tests/cuda/subjects/decode_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "src/tensor/float_bits.h"

namespace latte::subjects {
namespace {

constexpr uint16_t kNanBf16 = 0x7fff;
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

size_t Index(int64_t i) { return static_cast<size_t>(i); }

// The exact result of one row.
struct Exact {
  std::vector<double> o, o_magnitude;  // Σ p·v and Σ p·|v|
  double lse = kMinusInfinity;
  double slack = 0;  // by which a score may be off
};

struct Dot {
  double sum = 0, magnitude = 0;  // Σ q·k and Σ |q·k|
};

// Eight sums, which the compiler can keep in vectors.
Dot DotOf(const float* q, const uint16_t* k, int n) {
  double sum[8] = {}, magnitude[8] = {};
  for (int i = 0; i < n; i += 8)
    for (int j = 0; j < 8; ++j) {
      const double product = double{q[i + j]} * double{BF16ToFloat(k[i + j])};
      sum[j] += product;
      magnitude[j] += std::fabs(product);
    }
  Dot dot;
  for (int j = 0; j < 8; ++j) {
    dot.sum += sum[j];
    dot.magnitude += magnitude[j];
  }
  return dot;
}

// Scores of the keys that a row sees; `magnitude` becomes the largest Σ |q·k|.
std::vector<double> Scores(const DecodeProblem& problem, const cuda::Sequence& s, size_t row,
                           int visible, double* magnitude) {
  const float* q = problem.q_latent.data() + row * kLatent;
  const float* q_rope = problem.q_rope.data() + row * kRope;
  const double scale = double{problem.scale};
  std::vector<double> scores;
  for (int key = 0; key < visible; ++key) {
    const uint16_t* k = problem.Key(s, key);
    const Dot latent = DotOf(q, k, kLatent);
    const Dot rope = DotOf(q_rope, k + kLatent, kRope);
    scores.push_back((latent.sum + rope.sum) * scale);
    *magnitude = std::max(*magnitude, (latent.magnitude + rope.magnitude) * scale);
  }
  return scores;
}

Exact ExactRow(const DecodeProblem& problem, const cuda::Sequence& s, size_t row, int visible) {
  Exact out{std::vector<double>(kLatent), std::vector<double>(kLatent)};
  double magnitude = 0;
  std::vector<double> p = Scores(problem, s, row, visible, &magnitude);
  out.slack = 40 * 0x1p-23 * magnitude + 0x1p-18;
  if (visible == 0) return out;
  const double top = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - top);
  for (int key = 0; key < visible; ++key) {
    const uint16_t* v = problem.Key(s, key);
    for (int i = 0; i < kLatent; ++i) {
      const double part = p[Index(key)] / sum * double{BF16ToFloat(v[i])};
      out.o[Index(i)] += part;
      out.o_magnitude[Index(i)] += std::fabs(part);
    }
  }
  out.lse = top + std::log(sum);
  return out;
}

// Keeps the larger; a NaN replaces a number and stays.
void Raise(double& to, double value) {
  if (!(value <= to) && to == to) to = value;
}

void CompareRow(const Exact& want, const float* o, float lse, DecodeDistance& worst) {
  for (size_t i = 0; i < size_t{kLatent}; ++i) {
    const double off = std::fabs(double{o[i]} - want.o[i]);
    Raise(worst.o_absolute, off);
    Raise(worst.o, off == 0 ? 0 : off / ((0x1p-8 + want.slack) * want.o_magnitude[i]));
  }
  const double off = double{lse} == want.lse ? 0 : std::fabs(double{lse} - want.lse);
  Raise(worst.lse_absolute, off);
  Raise(worst.lse, off == 0 ? 0 : off / (want.slack + 0x1p-20 * std::fabs(want.lse)));
}

}  // namespace

DecodeProblem::DecodeProblem(const DecodeCase& c) : shape(c), scale(1 / std::sqrt(192.0f)) {
  int page_count = 0, longest = 1;
  for (const Lengths& s : c.sequences) {
    const int count = (s.total + c.page_tokens - 1) / c.page_tokens;
    sequences.push_back({tokens_, s.query, s.total, static_cast<int>(page_table.size())});
    for (int i = 0; i < count; ++i) page_table.push_back(page_count++);
    tokens_ += s.query;
    longest = std::max(longest, s.total);
  }
  PlacePages(page_count + 2, 7);  // page 0 and one more belong to no sequence
  FillValues(8);
  split_tokens_ = ((longest + c.splits - 1) / c.splits + 63) / 64 * 64;
}

void DecodeProblem::PlacePages(int page_count, unsigned seed) {
  std::vector<int32_t> place;
  for (int i = 1; i < page_count; ++i) place.push_back(i);
  std::shuffle(place.begin(), place.end(), std::mt19937(seed));
  for (int32_t& page : page_table) page = place[Index(page)];
  pages.assign(Index(int64_t{page_count} * shape.page_tokens * kWidth), kNanBf16);
}

void DecodeProblem::FillValues(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (const cuda::Sequence& s : sequences)
    for (int key = 0; key < s.total_len; ++key) {
      uint16_t* row = pages.data() + (Key(s, key) - pages.data());
      for (int i = 0; i < kWidth; ++i) row[i] = FloatToBF16(normal(random));
    }
  q_latent.resize(Index(Rows()) * kLatent);
  q_rope.resize(Index(Rows()) * kRope);
  for (std::vector<float>* part : {&q_latent, &q_rope})
    for (float& q : *part) q = RoundToBF16(normal(random) * shape.score_spread);
}

int DecodeProblem::LongestQuery() const {
  int longest = 1;
  for (const Lengths& s : shape.sequences) longest = std::max(longest, s.query);
  return longest;
}

int64_t DecodeProblem::PageCount() const {
  return static_cast<int64_t>(pages.size()) / (shape.page_tokens * kWidth);
}

int DecodeProblem::BoxKeys() const {
  if (shape.page_tokens % 64 == 0) return 64;
  return shape.page_tokens % 32 == 0 ? 32 : 16;
}

const uint16_t* DecodeProblem::Key(const cuda::Sequence& s, int key) const {
  const int64_t page = page_table[Index(s.table_start + key / shape.page_tokens)];
  return pages.data() + (page * shape.page_tokens + key % shape.page_tokens) * kWidth;
}

cuda::MlaDecodeParams DecodeProblem::Params() const {
  cuda::MlaDecodeParams p = {};
  p.q_latent = q_latent.data();
  p.q_rope = q_rope.data();
  p.pages = pages.data();
  p.page_table = page_table.data();
  p.sequences = sequences.data();
  p.total_rows = Rows();
  p.heads = shape.heads;
  p.page_tokens = shape.page_tokens;
  p.splits = shape.splits;
  p.split_tokens = split_tokens_;
  p.scale_log2 = scale * 1.44269504089f;
  return p;
}

DecodeDistance Compare(const DecodeProblem& problem, const std::vector<float>& o,
                       const std::vector<float>& lse) {
  DecodeDistance worst;
  const int heads = problem.shape.heads;
  for (const cuda::Sequence& s : problem.sequences)
    for (int row = 0; row < s.query_len * heads; ++row) {
      const size_t r = Index(s.query_start * heads + row);
      const int visible = std::max(0, s.total_len - s.query_len + row / heads + 1);
      CompareRow(ExactRow(problem, s, r, visible), o.data() + r * kLatent, lse[r], worst);
    }
  return worst;
}

const std::vector<DecodeCase>& DecodeCases() {
  static const std::vector<DecodeCase> cases = {
      {"one_head_short_and_empty", {{1, 0}, {1, 1}, {1, 63}, {1, 64}, {1, 65}}, 1, 16, 1},
      {"16_heads_ragged", {{1, 1000}, {1, 0}, {1, 1}, {1, 65}}, 16, 64, 1},
      {"16_heads_ragged_3_splits", {{1, 1000}, {1, 0}, {1, 1}, {1, 65}}, 16, 16, 3},
      {"128_heads_500_keys", {{1, 500}}, 128, 64, 1},
      {"128_heads_4_splits", {{1, 1000}, {1, 63}}, 128, 16, 4},
      {"16_heads_5_queries", {{5, 129}, {5, 5}, {5, 3}}, 16, 48, 2},
      {"5_heads_7_queries", {{7, 70}, {1, 64}, {2, 200}}, 5, 32, 2},
      {"16_heads_more_queries_than_keys", {{5, 3}, {3, 1}, {2, 0}}, 16, 16, 1},
      {"large_scores", {{1, 300}}, 16, 64, 2, 40},
  };
  return cases;
}

}  // namespace latte::subjects

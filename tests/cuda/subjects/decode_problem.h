// Decode problems for tests of the decode kernels: difficult shapes, NaN in all memory that a
// kernel must not read, and an fp64 reference with a bound derived from bf16 and fp32.
#pragma once

#include <string>
#include <vector>

#include "tests/cuda/subjects/mla_decode.h"

namespace latte::subjects {

using cuda::kLatent;
using cuda::kRope;
using cuda::kWidth;

struct Lengths {
  int query, total;  // new tokens; cached tokens, the new ones included
};

struct DecodeCase {
  std::string name;
  std::vector<Lengths> sequences;
  int heads;
  int page_tokens;
  int splits;
  float score_spread = 1;  // standard deviation of q
};

const std::vector<DecodeCase>& DecodeCases();

// Inputs whose unused parts are NaN, pages in shuffled order.
class DecodeProblem {
 public:
  explicit DecodeProblem(const DecodeCase& c);

  int Rows() const { return tokens_ * shape.heads; }
  int LongestQuery() const;
  int64_t PageCount() const;
  // How many keys a TMA box takes so that it lies in one page.
  int BoxKeys() const;
  // Without o and lse.
  cuda::MlaDecodeParams Params() const;
  const uint16_t* Key(const cuda::Sequence& s, int key) const;

  DecodeCase shape;
  std::vector<cuda::Sequence> sequences;
  std::vector<float> q_latent, q_rope;
  std::vector<uint16_t> pages;
  std::vector<int32_t> page_table;
  float scale;

 private:
  void PlacePages(int page_count, unsigned seed);
  void FillValues(unsigned seed);

  int tokens_ = 0, split_tokens_ = 0;
};

// How far results are from fp64, in units of what bf16 probabilities and fp32 sums allow: each
// probability is off by 2⁻⁸ and its score by `slack`, so o by (2⁻⁸ + slack)·Σ p|v|. A NaN stays.
struct DecodeDistance {
  double o = 0, lse = 0;  // at most 1 is right
  double o_absolute = 0, lse_absolute = 0;
};

DecodeDistance Compare(const DecodeProblem& problem, const std::vector<float>& o,
                       const std::vector<float>& lse);

}  // namespace latte::subjects

// A paged cache and queries for it, with everything poisoned that a kernel may not read.
#pragma once

#include <algorithm>
#include <numeric>

#include "src/kernels/params/mla.h"
#include "tests/conformance/guarded.h"
#include "tests/conformance/shapes.h"

namespace latte {

// Pages are handed out in random order among unused ones, but the first sequence ends in the pool's
// last page, behind which nothing can be read. Rows behind a sequence's last token and unused pages
// stay NaN.
class DecodeCase {
 public:
  DecodeCase(const DecodeShape& s, std::mt19937& rng)
      : shape_(s),
        tokens_(CountTokens(s)),
        q_latent(DType::kF32, {tokens_, s.heads, s.c}, 3),
        q_rope(DType::kF32, {tokens_, s.heads, s.r}, 2),
        pages(s.cache.dtype, {CountPages(s) + 3, s.page_tokens, s.cache.Width(s.c, s.r)}),
        o(DType::kF32, {tokens_, s.heads, s.c}),
        lse(DType::kF32, {tokens_, s.heads}) {
    FillRandom(q_latent, rng);
    FillRandom(q_rope, rng);
    std::vector<int32_t> order(static_cast<size_t>(pages.view().shape[0]));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), rng);
    std::swap(*std::max_element(order.begin(), order.end()), order.back());
    int64_t start = 0;
    for (const SequenceShape& sequence : s.sequences) {
      const auto count = static_cast<size_t>(CeilDiv(sequence.total_len, s.page_tokens));
      tables_.emplace_back(order.end() - static_cast<int64_t>(count), order.end());
      order.resize(order.size() - count);
      sequences.push_back({start, sequence.query_len, sequence.total_len, {}});
      start += sequence.query_len;
    }
    for (size_t i = 0; i < sequences.size(); ++i) {
      sequences[i].page_table = tables_[i];
      for (int64_t key = 0; key < sequences[i].total_len; ++key) FillRow(Row(i, key), rng);
    }
  }

  // Row of a key in the cache, rank 1.
  TensorView Row(size_t sequence, int64_t key) const {
    const int64_t page = tables_[sequence][static_cast<size_t>(key / shape_.page_tokens)];
    const int64_t width = shape_.cache.Width(shape_.c, shape_.r);
    const int64_t row = page * shape_.page_tokens + key % shape_.page_tokens;
    const DType dtype = shape_.cache.dtype;
    return {pages.view().data + row * width * SizeOf(dtype), dtype, {width}};
  }

  MlaDecodeOp::Params Params() const {
    MlaDecodeOp::Params p;
    p.q_latent = q_latent;
    p.q_rope = q_rope;
    p.pages = pages;
    p.sequences = sequences;
    p.o_latent = o;
    p.lse = lse;
    p.scale = shape_.scale;
    p.rows = Format();
    return p;
  }

  // The one scale of all rows, where a format has one, is no power of two.
  RowFormat Format() const {
    RowFormat format;
    format.kind = shape_.cache.kind;
    if (format.kind == RowKind::kF8Dense) format.descale = 0.3f;
    return format;
  }

  void PoisonOutputs() {
    o.Poison();
    lse.Poison();
  }

 private:
  // Numbers between −1 and 1, as the cache stores them.
  void FillRow(const TensorView& row, std::mt19937& rng) const {
    if (shape_.cache.kind == RowKind::kPlain) return FillRandom(row, rng);
    const Tensor x(DType::kF32, {shape_.c + shape_.r});
    FillRandom(x, rng);
    ref::QuantiseRow(Format(), x.Ptr<float>(), shape_.c, x.Ptr<float>() + shape_.c, shape_.r,
                     row.data);
  }
  static int64_t CountTokens(const DecodeShape& s) {
    int64_t tokens = 0;
    for (const SequenceShape& sequence : s.sequences) tokens += sequence.query_len;
    return tokens;
  }
  static int64_t CountPages(const DecodeShape& s) {
    int64_t count = 0;
    for (const SequenceShape& sequence : s.sequences)
      count += CeilDiv(sequence.total_len, s.page_tokens);
    return count;
  }

  const DecodeShape& shape_;
  int64_t tokens_;
  std::vector<std::vector<int32_t>> tables_;

 public:
  Guarded q_latent, q_rope, pages, o, lse;
  std::vector<DecodeSequence> sequences;
};

// Queries and expanded keys; k_nope and v lie interleaved in one buffer, as an up-projection leaves
// them. Keys that no query sees are not there: they would begin on the unreadable page.
class MhaCase {
 public:
  MhaCase(const MhaShape& s, std::mt19937& rng)
      : shape_(s),
        q_nope(DType::kF32, {s.queries, s.heads, s.n}, 3),
        q_rope(DType::kF32, {s.queries, s.heads, s.r}, 2),
        kv(DType::kF32, {Visible(s.queries - 1), s.heads, s.n + s.v}),
        k_rope(DType::kF32, {Visible(s.queries - 1), s.shared_rope ? 1 : s.heads, s.r}, 4),
        o(DType::kF32, {s.queries, s.heads, s.v}),
        lse(DType::kF32, {s.queries, s.heads}) {
    FillRandom(q_nope, rng);
    FillRandom(q_rope, rng);
    FillRandom(kv, rng);
    FillRandom(k_rope, rng);
  }

  // Keys that a query sees.
  int64_t Visible(int64_t query) const {
    return std::clamp<int64_t>(shape_.q_begin + query + 1 - shape_.key_begin, 0, shape_.keys);
  }

  MhaOp::Params Params() const {
    MhaOp::Params p;
    p.q_nope = q_nope;
    p.q_rope = q_rope;
    p.k_nope = kv.view().Slice(2, 0, shape_.n);
    p.v = kv.view().Slice(2, shape_.n, shape_.n + shape_.v);
    p.k_rope = k_rope;
    for (TensorView* t : {&p.k_nope, &p.v, &p.k_rope}) t->shape[0] = shape_.keys;
    if (shape_.shared_rope) {
      p.k_rope.shape[1] = shape_.heads;
      p.k_rope.stride[1] = 0;
    }
    p.q_begin = shape_.q_begin;
    p.key_begin = shape_.key_begin;
    p.o = o;
    p.lse = lse;
    p.scale = scale;
    p.arithmetic = arithmetic;
    return p;
  }

  void PoisonOutputs() {
    o.Poison();
    lse.Poison();
  }

 private:
  MhaShape shape_;

 public:
  Guarded q_nope, q_rope, kv, k_rope, o, lse;
  DType arithmetic = DType::kF32;
  float scale = 0.2f;
};

}  // namespace latte

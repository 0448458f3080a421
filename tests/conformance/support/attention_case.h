// A paged cache and queries for it. All memory that a kernel must not read is poisoned.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

#include "src/kernels/params/mla.h"
#include "tests/conformance/support/guarded.h"
#include "tests/conformance/support/shapes.h"

namespace latte {

// Fills a tensor of rank 1, 2 or 3.
using Draw = std::function<void(const TensorView&, std::mt19937&)>;

// Pages are assigned in random order, but the first sequence ends in the last page of the pool,
// which unreadable memory follows. Rows after the last token of a sequence and unused pages stay
// NaN. An invalid entry follows each page table; an unreadable page follows the last one.
class DecodeCase {
 public:
  DecodeCase(const DecodeShape& s, std::mt19937& rng, const Draw& draw = FillRandom)
      : shape_(s),
        tokens_(CountTokens(s)),
        entries_(DType::kI32, {CountEntries(s)}),
        q_latent(DType::kF32, {tokens_, s.heads, s.c}, 3),
        q_rope(DType::kF32, {tokens_, s.heads, s.r}, 2),
        pages(s.cache.dtype, {CountPages(s) + 3, s.page_tokens, s.cache.Width(s.c, s.r)}),
        o(DType::kF32, {tokens_, s.heads, s.c}),
        lse(DType::kF32, {tokens_, s.heads}) {
    draw(q_latent, rng);
    draw(q_rope, rng);
    HandOutPages(rng);
    std::vector<bool> filled(static_cast<size_t>(pages.view().shape[0]));
    for (size_t i = 0; i < sequences.size(); ++i) FillPages(i, filled, draw, rng);
  }

  // The cached row of a key, rank 1.
  TensorView Row(size_t sequence, int64_t key) const {
    const int64_t page = sequences[sequence].pages[static_cast<size_t>(key / shape_.page_tokens)];
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
    p.row_format = Format();
    p.positions = positions;
    return p;
  }

  // The single scale of all rows, if the format has one, is not a power of two.
  CacheRowFormat Format() const {
    CacheRowFormat format;
    format.kind = shape_.cache.kind;
    if (format.kind == CacheFormat::kF8Dense) format.descale = 0.3f;
    return format;
  }

  void PoisonOutputs() {
    o.Poison();
    lse.Poison();
  }

 private:
  static constexpr int32_t kNoPage = 2147480000;

  void HandOutPages(std::mt19937& rng) {
    std::vector<int32_t> order(static_cast<size_t>(pages.view().shape[0]));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), rng);
    std::swap(*std::max_element(order.begin(), order.end()), order.back());
    std::vector<int32_t> pool(order.begin(), order.begin() + shape_.pool);
    auto* entry = reinterpret_cast<int32_t*>(entries_.view().data);
    int64_t start = 0;
    for (const SequenceShape& sequence : shape_.sequences) {
      const int64_t count = CeilDiv(sequence.total_len, shape_.page_tokens);
      const int64_t own = OwnPages(shape_, count);
      if (!sequences.empty()) *entry++ = kNoPage;
      std::shuffle(pool.begin(), pool.end(), rng);
      std::copy_n(pool.begin(), count - own, entry);
      std::copy(order.end() - own, order.end(), entry + count - own);
      order.resize(order.size() - static_cast<size_t>(own));
      sequences.push_back({.query_start = start,
                           .count = sequence.query_len,
                           .cached_len = sequence.total_len - sequence.query_len,
                           .pages = {entry, static_cast<size_t>(count)}});
      entry += count;
      start += sequence.query_len;
    }
  }

  // Fills rows of keys in pages that are not yet filled.
  void FillPages(size_t sequence, std::vector<bool>& filled, const Draw& draw,
                 std::mt19937& rng) const {
    const SequenceChunk& s = sequences[sequence];
    for (size_t page = 0; page < s.pages.size(); ++page) {
      const auto at = static_cast<size_t>(s.pages[page]);
      if (filled[at]) continue;
      filled[at] = true;
      const int64_t begin = static_cast<int64_t>(page) * shape_.page_tokens;
      const int64_t end = std::min(begin + shape_.page_tokens, s.total_len());
      for (int64_t key = begin; key < end; ++key) FillRow(Row(sequence, key), draw, rng);
    }
  }

  // Numbers between −1 and 1, as the cache stores them.
  void FillRow(const TensorView& row, const Draw& draw, std::mt19937& rng) const {
    if (shape_.cache.kind == CacheFormat::kPlain) return draw(row, rng);
    const Tensor x(DType::kF32, {shape_.c + shape_.r});
    draw(x, rng);
    ref::QuantiseRow(Format(), x.Ptr<float>(), shape_.c, x.Ptr<float>() + shape_.c, shape_.r,
                     row.data);
  }
  static int64_t CountTokens(const DecodeShape& s) {
    int64_t tokens = 0;
    for (const SequenceShape& sequence : s.sequences) tokens += sequence.query_len;
    return tokens;
  }
  // With a pool, only the last page of a sequence is its own: its rows after the last token are
  // NaN.
  static int64_t OwnPages(const DecodeShape& s, int64_t count) {
    return s.pool > 0 ? std::min<int64_t>(count, 1) : count;
  }
  static int64_t CountPages(const DecodeShape& s) {
    int64_t count = s.pool;
    for (const SequenceShape& sequence : s.sequences)
      count += OwnPages(s, CeilDiv(sequence.total_len, s.page_tokens));
    return count;
  }
  static int64_t CountEntries(const DecodeShape& s) {
    int64_t count = -1;
    for (const SequenceShape& sequence : s.sequences)
      count += 1 + CeilDiv(sequence.total_len, s.page_tokens);
    return count;
  }

  const DecodeShape& shape_;
  int64_t tokens_;
  Guarded entries_;

 public:
  Guarded q_latent, q_rope, pages, o, lse;
  std::vector<SequenceChunk> sequences;
  TensorView positions;  // none
};

// Queries and expanded keys. k_nope and v are interleaved in one buffer, as an up-projection writes
// them. Keys that no query attends to are missing: they would begin on the unreadable page.
class MhaCase {
 public:
  MhaCase(const MhaShape& s, std::mt19937& rng, const Draw& draw = FillRandom)
      : shape_(s),
        q_nope(DType::kF32, {s.queries, s.heads, s.n}, 3),
        q_rope(DType::kF32, {s.queries, s.heads, s.r}, 2),
        kv(DType::kF32, {Visible(s.queries - 1), s.heads, s.n + s.v}),
        k_rope(DType::kF32, {Visible(s.queries - 1), s.shared_rope ? 1 : s.heads, s.r}, 4),
        o(DType::kF32, {s.queries, s.heads, s.v}),
        lse(DType::kF32, {s.queries, s.heads}) {
    for (const TensorView& t : {q_nope.view(), q_rope.view(), kv.view(), k_rope.view()})
      draw(t, rng);
  }

  // The number of keys that a query attends to.
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

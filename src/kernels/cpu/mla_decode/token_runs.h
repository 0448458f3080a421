// The tokens of a call of mla_decode that share their keys, and copies of cached rows that are keys
// of only one token. For launch files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "src/kernels/params/mla.h"

namespace latte::cpu {

// Tokens of one sequence that share their keys: all of its new tokens or, if there are lists of
// positions, one.
struct TokenRun {
  const SequenceChunk* sequence;
  int64_t token, count;  // rows of q_latent
  int64_t keys;          // of the last token; each token before it sees one key less
};

template <class F>
void ForEachTokenRun(const MlaDecodeOp::Params& p, const F& f) {
  for (const SequenceChunk& s : p.sequences) {
    const int64_t token = MlaDecodeOp::FirstRow(p, s);
    if (p.positions.empty())
      f(TokenRun{&s, token, s.count, s.total_len()});
    else
      for (int64_t t = token; t < token + s.count; ++t)
        f(TokenRun{&s, t, 1, ListLength(p.positions, t)});
  }
}

// The size of a cached row.
inline int64_t RowBytes(const MlaDecodeOp::Params& p) {
  return p.pages.shape[2] * SizeOf(p.pages.dtype);
}

// Copies the cached rows of `positions`, in order.
inline void CopyRows(const MlaDecodeOp::Params& p, const SequenceChunk& s,
                     std::span<const int32_t> positions, std::byte* to) {
  const int64_t page_tokens = p.pages.shape[1];
  const int64_t bytes = RowBytes(p);
  for (const int64_t position : positions) {
    const int64_t page = s.pages[static_cast<size_t>(position / page_tokens)];
    const int64_t row = page * page_tokens + position % page_tokens;
    std::memcpy(to, p.pages.data + row * bytes, static_cast<size_t>(bytes));
    to += bytes;
  }
}

}  // namespace latte::cpu

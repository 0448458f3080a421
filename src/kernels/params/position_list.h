// Lists of positions for sparse attention: which keys of its sequence each new token attends to.
//
// Layout     [T, K] i32, K > 0, contiguous. Row t lists positions in the token's sequence, in
//            ascending order, each once and none after the token's own; −1 fills up the rest of the
//            row. A row may be empty.
// Source     vLLM's and SGLang's sparse MLA for DeepSeek-V3.2: the indexer writes [tokens, topk]
//            i32 positions, −1 where there are fewer, and another kernel converts them to the rows
//            of the paged cache that FlashMLA's `indices` contain (deepseek-ai/FlashMLA,
//            flash_mla_with_kvcache). Here the attention op converts them.
// Order      They list positions by falling score or in any order. Here they ascend, so that sums
//            run in the order of keys and the bytes depend only on which positions are listed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "src/base/check.h"
#include "src/tensor/tensor.h"

namespace latte {

// The number of positions in row t.
inline int64_t ListLength(const TensorView& positions, int64_t t) {
  const int32_t* const row = positions.Row<int32_t>(t);
  return std::partition_point(row, row + positions.shape[1], [](int32_t p) { return p != -1; }) -
         row;
}

// The positions in row t, checked. `own`: the token's position.
inline std::span<const int32_t> ListOf(const TensorView& positions, int64_t t, int64_t own) {
  const std::span<const int32_t> row(positions.Row<int32_t>(t),
                                     static_cast<size_t>(positions.shape[1]));
  const std::span<const int32_t> list = row.first(static_cast<size_t>(ListLength(positions, t)));
  int32_t last = -1;
  for (const int32_t position : list) {
    LATTE_CHECK(position > last && position <= own, "position {} after {} in the list of token {}",
                position, last, own);
    last = position;
  }
  for (const int32_t unused : row.subspan(list.size()))
    LATTE_CHECK(unused == -1, "position {} after the end of the list of token {}", unused, own);
  return list;
}

}  // namespace latte

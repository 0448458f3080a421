// Repacks integer weights whose stored order kernels cannot multiply to [N, K], the values of a row
// consecutive. Pure functions of bytes; docs/formats/weights.md draws the layouts.
#pragma once

#include "src/base/thread_pool.h"
#include "src/tensor/tensor.h"

namespace latte {

// 4-bit values, two per byte, ⌈K/8⌉·4 bytes per row. `words` [K, ⌈N/8⌉] i32 as AWQ packs them: a
// word holds columns n … n+7 in the order 0, 2, 4, 6, 1, 3, 5, 7 from its low bits on. `threads`
// may be null here and below.
Tensor RepackAwq(const TensorView& words, int64_t n, ThreadPool* threads);

// As RepackAwq; `words` [⌈K/8⌉, N] i32 as GPTQ packs them: eight values of a column in order.
Tensor RepackGptq(const TensorView& words, ThreadPool* threads);

// int8 values [N, ⌈K/4⌉·4] from `words` [N, ⌈K/4⌉] i32, which store them with an offset of 128.
Tensor UnpackInt8(const TensorView& words, ThreadPool* threads);

// Zero points as BlockScale takes them, u8 [N, groups].
Tensor AwqZeros(const TensorView& words, int64_t n);                   // of [groups, ⌈N/8⌉] i32
Tensor GptqZeros(const TensorView& words, int64_t n, bool minus_one);  // of [groups, ⌈N/8⌉] i32
Tensor PackedZeros(const TensorView& words, int64_t n);                // of [⌈N/8⌉, groups] i32

// `scales` [groups, N] transposed to [N, groups]. Requires: elements of 2 or 4 bytes.
Tensor Transposed(const TensorView& scales);

}  // namespace latte

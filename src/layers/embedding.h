// Token embedding and output head.
#pragma once

#include "src/layers/linear.h"
#include "src/layers/mlp.h"

namespace latte {

// h[t,:] = table[tokens[t],:]. Shapes: table [vocab, D], h [T, D] f32. Requires: every token in [0,
// vocab).
void Embed(const TensorView& table, const TensorView& h, StepContext& step);

// logits = W_head · RMSNorm(h). Shapes: h [M, D] f32, logits [M, vocab] f32.
void Head(const RmsNorm& norm, const Linear& head, const TensorView& h, const TensorView& logits,
          StepContext& step);

}  // namespace latte

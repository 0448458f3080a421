// The LM head: hidden states to logits.
#pragma once

#include "src/layers/linear.h"
#include "src/layers/norm.h"

namespace latte {

// logits = W_head · RMSNorm(h). Shapes: h [M, D] f32, logits [M, vocab] f32.
void LmHead(const RmsNorm& norm, const Linear& head, const TensorView& h, const TensorView& logits,
            StepContext& step);

}  // namespace latte

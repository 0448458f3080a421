// Token embedding.
#pragma once

#include "src/layers/step_context.h"
#include "src/tensor/tensor.h"

namespace latte {

// h[t,:] = scale·table[tokens[t],:] for the step's tokens. Shapes: table [vocab, D], h [T, D] f32.
// Requires: every token in [0, vocab).
void Embed(const TensorView& table, const TensorView& h, StepContext& step, float scale = 1);

}  // namespace latte

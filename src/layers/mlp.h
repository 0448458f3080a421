// The gated MLP: y = W_down( silu(W_gate x) ⊙ W_up x ).
#pragma once

#include "src/layers/linear.h"

namespace latte {

// Immutable after loading.
struct Mlp {
  Linear gate;  // [F, D], IsReadWith `up`; of several ranks each has some rows of all three
  Linear up;    // [F, D]
  Linear down;  // [D, F]
};

// Writes y from x. Shapes: x and y [M, D] f32.
void Forward(const Mlp& mlp, const TensorView& x, const TensorView& y, StepContext& step);

}  // namespace latte

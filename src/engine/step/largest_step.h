// The steps that need the least and the most scratch memory of an engine. They measure the memory
// without running kernels.
#pragma once

#include <cstdint>

#include "src/engine/step/step.h"

namespace latte {

// A token of one sequence, with its logits.
void FillSmallest(Step& step, MlaPath path);

// As many tokens as the step holds, at the end of sequences of `longest` tokens, as few as
// possible, with a block of logits. The scratch memory of a step grows with its tokens, with the
// tokens of a sequence and with its length; paths are computed one after another. So no step on
// `path` needs more.
void FillLargest(Step& step, MlaPath path, int64_t longest);

}  // namespace latte

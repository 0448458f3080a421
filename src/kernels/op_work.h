// The least that ops have to do: what measured times are compared with.
#pragma once

#include <cstdint>

namespace latte {

// Of a call, whatever the kernel; an op that can tell has a `static OpWork WorkOf(const Params&)`.
struct OpWork {
  int64_t flops = 0;
  int64_t bytes = 0;  // of weights and of the cache, each read once; activations not counted
};

}  // namespace latte

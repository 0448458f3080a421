// The names of tensors in safetensors files of several writers.
#pragma once

#include <cstdint>

#include "src/checkpoint/container/tensor_files.h"

namespace latte {

// As Checkpoint::UseCommonNames, for safetensors files.
void UseNamesOfDeepseek(int64_t layers, StoredTensors& tensors);

}  // namespace latte

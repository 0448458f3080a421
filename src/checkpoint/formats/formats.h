// The list of weight formats. config.json is read, tensors are found and messages name the formats
// in this order.
#pragma once

#include "src/checkpoint/formats/common/weight_format.h"

namespace latte {

extern const WeightFormat kPlainWeights;      // plain.cc
extern const WeightFormat kFp8Weights;        // fp8.cc
extern const WeightFormat kInt8Weights;       // int8.cc
extern const WeightFormat kPackedIntWeights;  // packed_int.cc
extern const WeightFormat kAwqWeights;        // awq.cc
extern const WeightFormat kGptqWeights;       // gptq.cc
extern const WeightFormat kGgufWeights;       // gguf.cc; no config.json announces it

inline constexpr const WeightFormat* kWeightFormats[] = {
    &kPlainWeights, &kFp8Weights, &kInt8Weights, &kPackedIntWeights, &kAwqWeights, &kGptqWeights,
};

}  // namespace latte

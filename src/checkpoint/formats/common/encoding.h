// Parts of the encoders of weight formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latte {

// A group of smaller values is stored as zeros with scale 1: readers expect a scale above 0.
inline constexpr float kLeastScale = 1e-30f;

// Writes `value` as element i of an array of T.
template <class T>
void Put(std::vector<std::byte>& bytes, int64_t i, T value) {
  std::memcpy(bytes.data() + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

template <class T>
std::string BytesOf(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// Whether the projection belongs to the indexer of sparse attention.
bool IsOfIndexer(std::string_view name);

// The scale of a group of values for codes from −limit to limit − 1: the smallest bf16 for which
// every value, including the largest, lies within scale/2 of a code.
float IntScale(std::span<const float> w, float limit);
int IntCode(float w, float scale, int limit);

// Of WeightEncoder::uniform_scale and uniform_code, for codes from −largest_code to largest_code
// with a bf16 scale.
std::string UniformIntScaleBytes(double largest, int largest_code);
int UniformIntCode(float weight, double largest, int largest_code);

}  // namespace latte

// Element types of weights, caches and activations: one table, one row for each type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/tensor/dtype_enum.h"
#include "src/tensor/float_bits.h"
#include "src/tensor/weight_blocks.h"

namespace latte {

// The part of a type in a matrix product.
enum class DTypeUse : uint8_t {
  kPlain,        // activations, and weights without scales
  kScaledFloat,  // weights that need scales
  kScaledInt,    // the same; products take activations that are rounded to int8
  kBlocks,       // weights with their scales inside
  kOther
};

struct DTypeInfo {
  DType dtype;
  std::string_view name;    // "bf16"
  std::string_view stored;  // the name of the type in files of weights; empty: it has none
  int64_t bytes;            // of one element
  int64_t values;           // that one element of the last dimension holds
  DTypeUse use;
  int zero;  // the value of a weight that means 0, if no zero points are stored
  // Value i of a row as f32, at any alignment; null: not used in arithmetic.
  float (*load)(const std::byte* row, int64_t i);
};

constexpr float Unchanged(float x) { return x; }
constexpr float I8ToFloat(int8_t x) { return x; }
// Loads value i of a row of T and converts it.
template <class T, auto kConvert>
float LoadAs(const std::byte* row, int64_t i) {
  T bits;
  __builtin_memcpy(&bits, row + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return kConvert(bits);
}
inline float LoadU4(const std::byte* row, int64_t i) {
  return static_cast<float>(static_cast<int>(row[i / 2]) >> i % 2 * 4 & 15);
}
template <class Block>
float LoadFromBlock(const std::byte* row, int64_t i) {
  return blocks::ValueAt<Block>(
      reinterpret_cast<const uint8_t*>(row) + i / Block::kValues * Block::kBytes,
      static_cast<int>(i % Block::kValues));
}
template <class Block>
constexpr DTypeInfo BlockInfo(DType dtype, std::string_view name, std::string_view stored) {
  return {dtype,
          name,
          stored,
          Block::kBytes,
          Block::kValues,
          DTypeUse::kBlocks,
          0,
          LoadFromBlock<Block>};
}

// clang-format off
inline constexpr DTypeInfo kDTypes[] = {
    {DType::kF32, "f32", "F32", 4, 1, DTypeUse::kPlain, 0, LoadAs<float, Unchanged>},
    {DType::kF16, "f16", "F16", 2, 1, DTypeUse::kPlain, 0, LoadAs<uint16_t, F16ToFloat>},
    {DType::kBF16, "bf16", "BF16", 2, 1, DTypeUse::kPlain, 0, LoadAs<uint16_t, BF16ToFloat>},
    {DType::kF8E4M3, "f8_e4m3", "F8_E4M3", 1, 1, DTypeUse::kScaledFloat, 0,
     LoadAs<uint8_t, F8E4M3ToFloat>},
    {DType::kF8E4M3Fnuz, "f8_e4m3fnuz", "F8_E4M3FNUZ", 1, 1, DTypeUse::kScaledFloat, 0,
     LoadAs<uint8_t, F8E4M3FnuzToFloat>},
    {DType::kI8, "i8", "I8", 1, 1, DTypeUse::kScaledInt, 0, LoadAs<int8_t, I8ToFloat>},
    {DType::kU8, "u8", "U8", 1, 1, DTypeUse::kOther, 0, nullptr},
    {DType::kU4, "u4", "", 1, 2, DTypeUse::kScaledInt, 8, LoadU4},
    {DType::kI32, "i32", "I32", 4, 1, DTypeUse::kOther, 0, nullptr},
    {DType::kI64, "i64", "I64", 8, 1, DTypeUse::kOther, 0, nullptr},
    {DType::kBool, "bool", "BOOL", 1, 1, DTypeUse::kOther, 0, nullptr},
    {DType::kF8E8M0, "f8_e8m0", "F8_E8M0", 1, 1, DTypeUse::kOther, 0,
     LoadAs<uint8_t, F8E8M0ToFloat>},
    BlockInfo<blocks::Q4_0>(DType::kQ4_0, "q4_0", "Q4_0"),
    BlockInfo<blocks::Q4_1>(DType::kQ4_1, "q4_1", "Q4_1"),
    BlockInfo<blocks::Q5_0>(DType::kQ5_0, "q5_0", "Q5_0"),
    BlockInfo<blocks::Q5_1>(DType::kQ5_1, "q5_1", "Q5_1"),
    BlockInfo<blocks::Q8_0>(DType::kQ8_0, "q8_0", "Q8_0"),
    BlockInfo<blocks::Q2_K>(DType::kQ2_K, "q2_k", "Q2_K"),
    BlockInfo<blocks::Q3_K>(DType::kQ3_K, "q3_k", "Q3_K"),
    BlockInfo<blocks::Q4_K>(DType::kQ4_K, "q4_k", "Q4_K"),
    BlockInfo<blocks::Q5_K>(DType::kQ5_K, "q5_k", "Q5_K"),
    BlockInfo<blocks::Q6_K>(DType::kQ6_K, "q6_k", "Q6_K"),
    BlockInfo<blocks::IQ4_NL>(DType::kIQ4_NL, "iq4_nl", "IQ4_NL"),
    BlockInfo<blocks::IQ4_XS>(DType::kIQ4_XS, "iq4_xs", "IQ4_XS"),
    BlockInfo<blocks::MXFP4>(DType::kMXFP4, "mxfp4", "MXFP4"),
};
// clang-format on

// The row of a type. Rows are in the order of the enum.
constexpr const DTypeInfo& InfoOf(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }

// Bytes of one element.
constexpr int64_t SizeOf(DType dtype) { return InfoOf(dtype).bytes; }

// Values that one element of the last dimension holds.
constexpr int64_t ValuesPerElement(DType dtype) { return InfoOf(dtype).values; }

constexpr std::string_view Name(DType dtype) { return InfoOf(dtype).name; }

// Value i of a row as f32, at any alignment. For code that does not need speed; kernels read whole
// vectors. Requires: a type with a load function.
inline float LoadElement(const std::byte* row, DType dtype, int64_t i) {
  return InfoOf(dtype).load(row, i);
}

constexpr bool IsPlain(DType dtype) { return InfoOf(dtype).use == DTypeUse::kPlain; }

constexpr bool IsBlocks(DType dtype) { return InfoOf(dtype).use == DTypeUse::kBlocks; }

// Whether weights may have the type.
constexpr bool IsWeight(DType dtype) { return InfoOf(dtype).use != DTypeUse::kOther; }

// A float as the 16 bits of `dtype`. Requires: kBF16 or kF16.
constexpr uint16_t FloatTo16(float value, DType dtype) {
  return dtype == DType::kF16 ? FloatToF16(value) : FloatToBF16(value);
}

// Converts `count` floats to 16-bit `dtype`. One loop per dtype, so that each is vectorised.
// Requires: kBF16 or kF16.
inline void RoundTo16(const float* from, int64_t count, DType dtype, uint16_t* to) {
  if (dtype == DType::kF16)
    for (int64_t i = 0; i < count; ++i) to[i] = FloatToF16(from[i]);
  else
    for (int64_t i = 0; i < count; ++i) to[i] = FloatToBF16(from[i]);
}

// Whether the type is an 8-bit float, whose values need scales.
constexpr bool IsF8(DType dtype) { return dtype == DType::kF8E4M3 || dtype == DType::kF8E4M3Fnuz; }

}  // namespace latte

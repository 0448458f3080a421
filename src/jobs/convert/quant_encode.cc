#include "src/jobs/convert/quant_encode.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "src/base/check.h"
#include "src/base/math.h"
#include "src/tensor/dtype.h"

namespace latte {
namespace {

// A group of smaller values is stored as zeros with scale 1: readers expect a scale above 0.
constexpr float kTooSmall = 1e-30f;

template <class T>
void Put(std::vector<std::byte>& bytes, int64_t i, T value) {
  std::memcpy(bytes.data() + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

void AddError(float w, float stored, EncodedRows& out) {
  const double error = static_cast<double>(w) - static_cast<double>(stored);
  out.squared_error += error * error;
  out.squared += static_cast<double>(w) * static_cast<double>(w);
}

// The next bf16 at or above a value that is not negative.
float RoundUpToBF16(float value) {
  const float rounded = RoundToBF16(value);
  return rounded >= value ? rounded : BF16ToFloat(static_cast<uint16_t>(FloatToBF16(value) + 1));
}

// The scale of a group of values for codes from −limit to limit − 1, each off by at most half a
// step.
float IntScale(std::span<const float> w, float limit) {
  float most = 0;
  float least = 0;
  for (const float x : w) {
    most = std::max(most, x);
    least = std::min(least, x);
  }
  const float scale = std::max(most / (limit - 0.5f), -least / (limit + 0.5f));

  return scale > kTooSmall ? RoundUpToBF16(scale) : 1.0f;
}

int IntCode(float w, float scale, int limit) {
  return static_cast<int>(
      std::clamp(std::nearbyint(w / scale), static_cast<float>(-limit), limit - 1.0f));
}

EncodedRows EncodeI8(std::span<const float> w, int64_t rows, int64_t columns) {
  EncodedRows out;
  out.values.resize(static_cast<size_t>(rows * columns));
  out.scales.resize(static_cast<size_t>(rows * 2));
  for (int64_t i = 0; i < rows; ++i) {
    const auto row = w.subspan(static_cast<size_t>(i * columns), static_cast<size_t>(columns));
    const float scale = IntScale(row, 128);
    Put(out.scales, i, FloatToBF16(scale));
    for (int64_t j = 0; j < columns; ++j) {
      const float x = row[static_cast<size_t>(j)];
      const int code = IntCode(x, scale, 128);
      Put(out.values, i * columns + j, static_cast<int8_t>(code));
      AddError(x, static_cast<float>(code) * scale, out);
    }
  }
  return out;
}

EncodedRows EncodeI4(std::span<const float> w, int64_t group) {
  EncodedRows out;
  out.values.resize(w.size() / 2);
  const int64_t groups = static_cast<int64_t>(w.size()) / group;
  out.scales.resize(static_cast<size_t>(groups * 2));
  for (int64_t g = 0; g < groups; ++g) {
    const auto run = w.subspan(static_cast<size_t>(g * group), static_cast<size_t>(group));
    const float scale = IntScale(run, 8);
    Put(out.scales, g, FloatToBF16(scale));
    for (int64_t j = 0; j < group; ++j) {
      const float x = run[static_cast<size_t>(j)];
      const int code = IntCode(x, scale, 8);
      AddError(x, static_cast<float>(code) * scale, out);
      // Eight codes per 32-bit word, from its low bits on: two per byte.
      std::byte& both = out.values[static_cast<size_t>(g * group + j) / 2];
      both |= static_cast<std::byte>((code + 8) << (j % 2 * 4));
    }
  }
  return out;
}

// Encodes one block of at most kF8Block rows and columns, whose first element is `at`.
float EncodeF8Block(std::span<const float> w, int64_t columns, int64_t at, int64_t rows,
                    int64_t width, EncodedRows& out) {
  float largest = 0;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j)
      largest = std::max(largest, std::abs(w[static_cast<size_t>(at + i * columns + j)]));
  const float scale = largest > kTooSmall ? largest / 448.0f : 1.0f;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j) {
      const auto e = static_cast<size_t>(at + i * columns + j);
      const uint8_t code = FloatToF8E4M3(w[e] / scale);
      out.values[e] = static_cast<std::byte>(code);
      AddError(w[e], F8E4M3ToFloat(code) * scale, out);
    }
  return scale;
}

EncodedRows EncodeF8(std::span<const float> w, int64_t rows, int64_t columns) {
  EncodedRows out;
  out.values.resize(w.size());
  const int64_t block_columns = CeilDiv(columns, kF8Block);
  out.scales.resize(static_cast<size_t>(CeilDiv(rows, kF8Block) * block_columns * 4));
  for (int64_t i = 0; i < rows; i += kF8Block)
    for (int64_t j = 0; j < columns; j += kF8Block) {
      const float scale = EncodeF8Block(w, columns, i * columns + j, std::min(kF8Block, rows - i),
                                        std::min(kF8Block, columns - j), out);
      Put(out.scales, i / kF8Block * block_columns + j / kF8Block, scale);
    }
  return out;
}

}  // namespace

EncodedRows EncodeRows(const QuantScheme& scheme, std::span<const float> w, int64_t columns) {
  LATTE_CHECK(FitsGroups(scheme, columns), "{} columns", columns);
  const int64_t rows = static_cast<int64_t>(w.size()) / columns;
  switch (scheme.kind) {
    case QuantScheme::Kind::kF8:
      return EncodeF8(w, rows, columns);
    case QuantScheme::Kind::kI8:
      return EncodeI8(w, rows, columns);
    case QuantScheme::Kind::kI4:
      return EncodeI4(w, scheme.group);
  }
  return {};
}

}  // namespace latte

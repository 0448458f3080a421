#include "src/checkpoint/check_weights.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "src/tensor/weight_blocks.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

// A value is not finite if `bits & mask == pattern`. The sign matters only for FNUZ types.
struct NotFinite {
  std::string_view dtype;
  int64_t bytes;
  uint64_t mask;
  uint64_t pattern;
};
constexpr NotFinite kNotFinite[] = {
    {"BF16", 2, 0x7f80, 0x7f80},        {"F16", 2, 0x7c00, 0x7c00},
    {"F32", 4, 0x7f800000, 0x7f800000}, {"F64", 8, 0x7ff0000000000000, 0x7ff0000000000000},
    {"C64", 4, 0x7f800000, 0x7f800000},  // two F32 values
    {"F8_E4M3", 1, 0x7f, 0x7f},         {"F8_E5M2", 1, 0x7c, 0x7c},
    {"F8_E4M3FNUZ", 1, 0xff, 0x80},     {"F8_E5M2FNUZ", 1, 0xff, 0x80},
    {"F8_E8M0", 1, 0xff, 0xff},
};

template <class Word>
Word LoadWord(const std::byte* at) {
  Word word;
  std::memcpy(&word, at, sizeof(word));  // tensors may be unaligned
  return word;
}

// The index of the first of `count` words that is not finite. Whole blocks are tested without a
// branch per word, so the compiler vectorises the loop.
template <class Word>
std::optional<int64_t> FirstNotFinite(const std::byte* data, int64_t count, const NotFinite& rule) {
  constexpr int64_t kCheckedValues = 4096;
  const Word mask = static_cast<Word>(rule.mask);
  const Word pattern = static_cast<Word>(rule.pattern);
  const auto size = static_cast<int64_t>(sizeof(Word));
  for (int64_t begin = 0; begin < count; begin += kCheckedValues) {
    const int64_t end = std::min(count, begin + kCheckedValues);
    Word any = 0;
    for (int64_t i = begin; i < end; ++i)
      any = static_cast<Word>(any | ((LoadWord<Word>(data + i * size) & mask) == pattern ? 1 : 0));
    if (any == 0) continue;
    for (int64_t i = begin; i < end; ++i)
      if ((LoadWord<Word>(data + i * size) & mask) == pattern) return i;
  }
  return std::nullopt;
}

std::optional<int64_t> FirstNotFinite(const std::byte* data, int64_t bytes, const NotFinite& rule) {
  const int64_t count = bytes / rule.bytes;
  switch (rule.bytes) {
    case 1:
      return FirstNotFinite<uint8_t>(data, count, rule);
    case 2:
      return FirstNotFinite<uint16_t>(data, count, rule);
    case 4:
      return FirstNotFinite<uint32_t>(data, count, rule);
    default:
      return FirstNotFinite<uint64_t>(data, count, rule);
  }
}

// Whether a block of a type has finite values alone.
struct BlockCheck {
  std::string_view dtype;
  int64_t bytes, values;
  bool (*is_finite)(const uint8_t* block);
};
template <class Block>
constexpr BlockCheck CheckOf(std::string_view dtype) {
  return {dtype, Block::kBytes, Block::kValues, blocks::IsFinite<Block>};
}
constexpr BlockCheck kBlockChecks[] = {
    CheckOf<blocks::Q4_0>("Q4_0"),     CheckOf<blocks::Q4_1>("Q4_1"),
    CheckOf<blocks::Q5_0>("Q5_0"),     CheckOf<blocks::Q5_1>("Q5_1"),
    CheckOf<blocks::Q8_0>("Q8_0"),     CheckOf<blocks::Q2_K>("Q2_K"),
    CheckOf<blocks::Q3_K>("Q3_K"),     CheckOf<blocks::Q4_K>("Q4_K"),
    CheckOf<blocks::Q5_K>("Q5_K"),     CheckOf<blocks::Q6_K>("Q6_K"),
    CheckOf<blocks::IQ4_NL>("IQ4_NL"), CheckOf<blocks::IQ4_XS>("IQ4_XS"),
    CheckOf<blocks::MXFP4>("MXFP4"),
};

std::optional<int64_t> FirstNotFinite(const std::byte* data, int64_t bytes,
                                      const BlockCheck& check) {
  const auto* const block = reinterpret_cast<const uint8_t*>(data);
  for (int64_t i = 0; i < bytes / check.bytes; ++i)
    if (!check.is_finite(block + i * check.bytes)) return i * check.values;
  return std::nullopt;
}

// The index `flat` of a row-major tensor, written as "[3, 17]".
std::string IndexString(int64_t flat, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  return ShapeString(index);
}

// The element of the tensor's first value that is not finite, or the first element of its block.
std::optional<int64_t> FirstNotFinite(const std::byte* data, const StoredTensor& tensor) {
  const auto* const block = std::ranges::find(kBlockChecks, tensor.dtype_name, &BlockCheck::dtype);
  if (block != std::end(kBlockChecks)) return FirstNotFinite(data, tensor.bytes, *block);
  const auto* const rule = std::ranges::find(kNotFinite, tensor.dtype_name, &NotFinite::dtype);
  if (rule == std::end(kNotFinite)) return std::nullopt;
  const std::optional<int64_t> at = FirstNotFinite(data, tensor.bytes, *rule);
  return at && rule->dtype == "C64" ? *at / 2 : at;
}

Status CheckTensor(const Checkpoint& checkpoint, const std::string& name,
                   const StoredTensor& tensor) {
  const MappedFile& file = *checkpoint.files()[static_cast<size_t>(tensor.file_index)];
  const std::optional<int64_t> element = FirstNotFinite(file.bytes().data() + tensor.begin, tensor);
  if (!element) return {};
  return Corrupt(fmt::format(
      "{}: tensor '{}': expected finite {} values, found NaN or infinity at {}; "
      "download the checkpoint again, or ask its makers",
      file.path(), Printable(name), tensor.dtype_name, IndexString(*element, tensor.shape)));
}

}  // namespace

Status CheckWeights(const Checkpoint& checkpoint, const BytesChecked& checked) {
  int64_t total = 0;
  for (const auto& [name, tensor] : checkpoint.tensors()) total += tensor.bytes;
  int64_t done = 0;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    LATTE_RETURN_IF_ERROR(CheckTensor(checkpoint, name, tensor));
    done += tensor.bytes;
    if (checked) checked(done, total);
  }
  return {};
}

}  // namespace latte

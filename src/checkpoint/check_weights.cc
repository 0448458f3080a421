#include "src/checkpoint/check_weights.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

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

// The index `flat` of a row-major tensor, written as "[3, 17]".
std::string IndexString(int64_t flat, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  return ShapeString(index);
}

Status CheckTensor(const Checkpoint& checkpoint, const std::string& name,
                   const StoredTensor& tensor) {
  const auto* rule = std::find_if(std::begin(kNotFinite), std::end(kNotFinite),
                                  [&](const NotFinite& r) { return r.dtype == tensor.dtype_name; });
  if (rule == std::end(kNotFinite)) return {};
  const MappedFile& file = *checkpoint.files()[static_cast<size_t>(tensor.file_index)];
  const std::byte* data = file.bytes().data() + tensor.begin;
  const std::optional<int64_t> at = FirstNotFinite(data, tensor.bytes, *rule);
  if (!at) return {};
  const int64_t element = rule->dtype == "C64" ? *at / 2 : *at;
  return Corrupt(fmt::format(
      "{}: tensor '{}': expected finite {} values, found NaN or infinity at {}; "
      "download the checkpoint again, or ask its makers",
      file.path(), Printable(name), tensor.dtype_name, IndexString(element, tensor.shape)));
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

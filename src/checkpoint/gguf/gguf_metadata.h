// The metadata of a GGUF file: keys and typed values. Values stay in the mapped file; the index of
// the keys takes a few times their size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/checkpoint/gguf/gguf_cursor.h"

namespace latte {

// The numbers of the format.
enum class GgufValueType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

// One value, or the elements of an array, in their encoding.
struct GgufValue {
  GgufValueType type = GgufValueType::kU8;  // of an array: of its elements
  bool is_array = false;
  int64_t count = 1;
  std::span<const std::byte> bytes;
};

// Immutable, thread-safe; valid as long as the mapped file. A getter returns nullopt if the key is
// absent; another type than it names is an error: kCorrupt with key, expected and found type.
class GgufMetadata {
 public:
  // Reads `count` entries. Errors: kCorrupt naming path, key and rule.
  [[nodiscard]] static Result<GgufMetadata> Read(GgufCursor& cursor, uint64_t count);

  const std::map<std::string, GgufValue, std::less<>>& entries() const { return entries_; }
  const std::string& path() const { return path_; }

  // The entry `key`, or nullptr.
  const GgufValue* Find(std::string_view key) const;

  // An integer of any width, below 2^63.
  [[nodiscard]] Result<std::optional<int64_t>> Int(std::string_view key) const;
  // A finite floating-point number.
  [[nodiscard]] Result<std::optional<double>> Number(std::string_view key) const;
  [[nodiscard]] Result<std::optional<bool>> Bool(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::string_view>> String(std::string_view key) const;

  // Arrays.
  [[nodiscard]] Result<std::optional<std::vector<int64_t>>> Ints(std::string_view key) const;
  // Of f32, finite.
  [[nodiscard]] Result<std::optional<std::vector<float>>> Floats(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::vector<bool>>> Bools(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::vector<std::string_view>>> Strings(
      std::string_view key) const;

 private:
  tl::unexpected<Error> WrongType(std::string_view key, std::string_view expected,
                                  const GgufValue& found) const;
  Result<int64_t> IntAt(std::string_view key, const GgufValue& value, int64_t i) const;

  std::string path_;
  std::map<std::string, GgufValue, std::less<>> entries_;
};

// `result` of parsing something that metadata became; its error says what to do about it.
template <class T>
Result<T> WithAdvice(Result<T> result) {
  if (!result && result.error().code == Code::kCorrupt)
    result.error().message += "; take another copy of the model";
  return result;
}

}  // namespace latte

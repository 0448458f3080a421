// Writes GGUF files for tests, also malformed ones: every count, type and offset can be set apart
// from what it describes.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latte::testing_support {

// The bytes of a number.
template <class T>
std::string GgufNumber(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

inline std::string GgufString(std::string_view text) {
  return GgufNumber<uint64_t>(text.size()) + std::string(text);
}

// The numbers of the types of values.
enum : uint32_t {
  kGgufU8,
  kGgufI8,
  kGgufU16,
  kGgufI16,
  kGgufU32,
  kGgufI32,
  kGgufF32,
  kGgufBool,
  kGgufText,
  kGgufArray,
  kGgufU64,
  kGgufI64,
  kGgufF64
};

// An entry of the metadata, with the encoded value.
inline std::string GgufEntry(std::string_view key, uint32_t type, std::string_view value) {
  return GgufString(key) + GgufNumber(type) + std::string(value);
}
inline std::string GgufU32Entry(std::string_view key, uint32_t value) {
  return GgufEntry(key, kGgufU32, GgufNumber(value));
}
inline std::string GgufF32Entry(std::string_view key, float value) {
  return GgufEntry(key, kGgufF32, GgufNumber(value));
}
inline std::string GgufTextEntry(std::string_view key, std::string_view value) {
  return GgufEntry(key, kGgufText, GgufString(value));
}
inline std::string GgufArrayEntry(std::string_view key, uint32_t type, uint64_t count,
                                  std::string_view elements) {
  return GgufEntry(key, kGgufArray, GgufNumber(type) + GgufNumber(count) + std::string(elements));
}

// A tensor's description; dimensions as the file has them, innermost first.
inline std::string GgufTensorInfo(std::string_view name, std::initializer_list<uint64_t> dimensions,
                                  uint32_t type, uint64_t offset) {
  std::string out = GgufString(name) + GgufNumber(static_cast<uint32_t>(dimensions.size()));
  for (const uint64_t dimension : dimensions) out += GgufNumber(dimension);
  return out + GgufNumber(type) + GgufNumber(offset);
}

struct GgufImage {
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::vector<std::string> entries;
  std::vector<std::string> tensors;
  std::optional<uint64_t> entry_count;  // nullopt: as many as there are
  std::optional<uint64_t> tensor_count;
  size_t alignment = 32;
  std::string data;

  std::string Header() const {
    std::string out = magic + GgufNumber(version) +
                      GgufNumber(tensor_count.value_or(tensors.size())) +
                      GgufNumber(entry_count.value_or(entries.size()));
    for (const std::string& entry : entries) out += entry;
    for (const std::string& tensor : tensors) out += tensor;
    return out;
  }
  std::string Bytes() const {
    std::string out = Header();
    if (data.empty()) return out;
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    return out + data;
  }
};

}  // namespace latte::testing_support

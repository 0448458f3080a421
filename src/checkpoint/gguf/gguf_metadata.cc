#include "src/checkpoint/gguf/gguf_metadata.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/text/unicode/printable.h"

namespace latte {
namespace {

// Published files have fewer than 100 entries.
constexpr uint64_t kMaxMetadataEntries = 65'536;
constexpr uint64_t kLeastEntryBytes = 14;  // a key of one byte with its length, a type, a byte
constexpr uint64_t kMaxKeyBytes = 65'535;  // the format's own limit

struct ValueTypeInfo {
  std::string_view name;
  uint64_t bytes;  // the least of one value
};
// In the order of GgufValueType.
constexpr std::array<ValueTypeInfo, 13> kValueTypes = {{{"u8", 1},
                                                        {"i8", 1},
                                                        {"u16", 2},
                                                        {"i16", 2},
                                                        {"u32", 4},
                                                        {"i32", 4},
                                                        {"f32", 4},
                                                        {"bool", 1},
                                                        {"string", 8},
                                                        {"array", 12},
                                                        {"u64", 8},
                                                        {"i64", 8},
                                                        {"f64", 8}}};

const ValueTypeInfo& InfoOfValue(GgufValueType type) {
  return kValueTypes[static_cast<size_t>(type)];
}

bool IsIntegerValue(GgufValueType type) {
  switch (type) {
    case GgufValueType::kU8:
    case GgufValueType::kI8:
    case GgufValueType::kU16:
    case GgufValueType::kI16:
    case GgufValueType::kU32:
    case GgufValueType::kI32:
    case GgufValueType::kU64:
    case GgufValueType::kI64:
      return true;
    default:
      return false;
  }
}

template <class T>
T LoadValue(const GgufValue& value, int64_t i) {
  T out;
  std::memcpy(&out, value.bytes.data() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return out;
}

Result<GgufValueType> ReadValueType(GgufCursor& cursor, std::string_view what) {
  LATTE_ASSIGN_OR_RETURN(const uint32_t type, cursor.Number<uint32_t>(what));
  if (type >= kValueTypes.size())
    return cursor.Bad(fmt::format("{} from 0 to {}", what, kValueTypes.size() - 1),
                      fmt::format("{}", type));
  return static_cast<GgufValueType>(type);
}

// `count` values of value.type, which is no array.
Status ReadValues(GgufCursor& cursor, uint64_t count, GgufValue& value) {
  const ValueTypeInfo& info = InfoOfValue(value.type);
  const auto left = static_cast<uint64_t>(cursor.left());
  if (count > left / info.bytes)
    return cursor.Bad(
        fmt::format("{} values of type {} at byte {}", count, info.name, cursor.position()),
        fmt::format("only {} more bytes", left), GgufCursor::kCutShort);
  value.count = static_cast<int64_t>(count);
  if (value.type != GgufValueType::kString) {
    LATTE_ASSIGN_OR_RETURN(value.bytes, cursor.Bytes(count * info.bytes, "the value"));
  } else {
    GgufCursor strings = cursor;
    for (uint64_t i = 0; i < count; ++i) LATTE_RETURN_IF_ERROR(strings.String("a string"));
    const int64_t length = strings.position() - cursor.position();
    LATTE_ASSIGN_OR_RETURN(value.bytes, cursor.Bytes(static_cast<uint64_t>(length), "the value"));
  }
  if (value.type == GgufValueType::kBool)
    for (const std::byte bit : value.bytes)
      if (std::to_integer<int>(bit) > 1)
        return cursor.Bad("true or false as 1 or 0", fmt::format("{}", std::to_integer<int>(bit)));
  return {};
}

Result<GgufValue> ReadEntryValue(GgufCursor& cursor) {
  GgufValue value;
  LATTE_ASSIGN_OR_RETURN(value.type, ReadValueType(cursor, "a type of values"));
  uint64_t count = 1;
  if (value.type == GgufValueType::kArray) {
    value.is_array = true;
    LATTE_ASSIGN_OR_RETURN(value.type, ReadValueType(cursor, "a type of elements"));
    if (value.type == GgufValueType::kArray)
      return cursor.Bad("an array of numbers, bools or strings", "an array of arrays");
    LATTE_ASSIGN_OR_RETURN(count, cursor.Number<uint64_t>("the length of an array"));
  }
  LATTE_RETURN_IF_ERROR(ReadValues(cursor, count, value));
  return value;
}

}  // namespace

Result<GgufMetadata> GgufMetadata::Read(GgufCursor& cursor, uint64_t count) {
  GgufMetadata out;
  out.path_ = cursor.path();
  cursor.SetPart("metadata");
  if (count > kMaxMetadataEntries)
    return cursor.Bad(fmt::format("at most {} entries", kMaxMetadataEntries),
                      fmt::format("{}", count));
  if (count > static_cast<uint64_t>(cursor.left()) / kLeastEntryBytes)
    return cursor.Bad(fmt::format("{} entries", count),
                      fmt::format("only {} more bytes", cursor.left()), GgufCursor::kCutShort);
  for (uint64_t i = 0; i < count; ++i) {
    cursor.SetPart(fmt::format("metadata entry {} of {}", i + 1, count));
    LATTE_ASSIGN_OR_RETURN(const std::string_view key, cursor.String("a key"));
    if (key.empty() || key.size() > kMaxKeyBytes)
      return cursor.Bad(fmt::format("a key of 1 to {} bytes", kMaxKeyBytes),
                        fmt::format("{} bytes", key.size()));
    cursor.SetPart(fmt::format("metadata key '{}'", Printable(key)));
    LATTE_ASSIGN_OR_RETURN(const GgufValue value, ReadEntryValue(cursor));
    if (!out.entries_.emplace(key, value).second)
      return cursor.Bad("each key once", "the key twice");
  }
  return out;
}

const GgufValue* GgufMetadata::Find(std::string_view key) const {
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : &it->second;
}

tl::unexpected<Error> GgufMetadata::WrongType(std::string_view key, std::string_view expected,
                                              const GgufValue& found) const {
  return Corrupt(fmt::format(
      "{}: metadata key '{}': expected {}, found {}; take another copy of the model", path_,
      Printable(key), expected,
      found.is_array ? fmt::format("an array of {} values of type {}", found.count,
                                   InfoOfValue(found.type).name)
                     : fmt::format("a value of type {}", InfoOfValue(found.type).name)));
}

// Element i of a value of an integer type.
Result<int64_t> GgufMetadata::IntAt(std::string_view key, const GgufValue& value, int64_t i) const {
  switch (value.type) {
    case GgufValueType::kU8:
      return LoadValue<uint8_t>(value, i);
    case GgufValueType::kI8:
      return LoadValue<int8_t>(value, i);
    case GgufValueType::kU16:
      return LoadValue<uint16_t>(value, i);
    case GgufValueType::kI16:
      return LoadValue<int16_t>(value, i);
    case GgufValueType::kU32:
      return LoadValue<uint32_t>(value, i);
    case GgufValueType::kI32:
      return LoadValue<int32_t>(value, i);
    default:
      break;
  }
  const auto number = LoadValue<int64_t>(value, i);
  if (value.type == GgufValueType::kU64 && number < 0)
    return Corrupt(
        fmt::format("{}: metadata key '{}': expected an integer below 2^63, found {}; take another "
                    "copy of the model",
                    path_, Printable(key), static_cast<uint64_t>(number)));
  return number;
}

Result<std::optional<int64_t>> GgufMetadata::Int(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_array || !IsIntegerValue(value->type)) return WrongType(key, "an integer", *value);
  LATTE_ASSIGN_OR_RETURN(const int64_t number, IntAt(key, *value, 0));
  return number;
}

Result<std::optional<double>> GgufMetadata::Number(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  const bool is_f32 = value->type == GgufValueType::kF32;
  if (value->is_array || (!is_f32 && value->type != GgufValueType::kF64))
    return WrongType(key, "a floating-point number", *value);
  const double number =
      is_f32 ? static_cast<double>(LoadValue<float>(*value, 0)) : LoadValue<double>(*value, 0);
  if (!std::isfinite(number))
    return Corrupt(
        fmt::format("{}: metadata key '{}': expected a finite number, found {}; take another copy "
                    "of the model",
                    path_, Printable(key), number));
  return number;
}

Result<std::optional<bool>> GgufMetadata::Bool(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_array || value->type != GgufValueType::kBool)
    return WrongType(key, "true or false", *value);
  return LoadValue<uint8_t>(*value, 0) != 0;
}

Result<std::optional<std::string_view>> GgufMetadata::String(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_array || value->type != GgufValueType::kString)
    return WrongType(key, "a string", *value);
  LATTE_ASSIGN_OR_RETURN(const std::string_view text, GgufCursor(value->bytes, path_).String(key));
  return text;
}

Result<std::optional<std::vector<int64_t>>> GgufMetadata::Ints(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array || !IsIntegerValue(value->type))
    return WrongType(key, "an array of integers", *value);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < value->count; ++i) {
    LATTE_ASSIGN_OR_RETURN(const int64_t number, IntAt(key, *value, i));
    out.push_back(number);
  }
  return out;
}

Result<std::optional<std::vector<float>>> GgufMetadata::Floats(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array || value->type != GgufValueType::kF32)
    return WrongType(key, "an array of f32", *value);
  std::vector<float> out;
  for (int64_t i = 0; i < value->count; ++i) {
    out.push_back(LoadValue<float>(*value, i));
    if (!std::isfinite(out.back()))
      return Corrupt(
          fmt::format("{}: metadata key '{}': expected finite numbers, found {} as number {}; take "
                      "another copy of the model",
                      path_, Printable(key), out.back(), i));
  }
  return out;
}

Result<std::optional<std::vector<bool>>> GgufMetadata::Bools(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array || value->type != GgufValueType::kBool)
    return WrongType(key, "an array of true and false", *value);
  std::vector<bool> out;
  for (int64_t i = 0; i < value->count; ++i) out.push_back(LoadValue<uint8_t>(*value, i) != 0);
  return out;
}

Result<std::optional<std::vector<std::string_view>>> GgufMetadata::Strings(
    std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array || value->type != GgufValueType::kString)
    return WrongType(key, "an array of strings", *value);
  std::vector<std::string_view> out;
  GgufCursor strings(value->bytes, path_);
  for (int64_t i = 0; i < value->count; ++i) {
    LATTE_ASSIGN_OR_RETURN(const std::string_view text, strings.String("a string"));
    out.push_back(text);
  }
  return out;
}

}  // namespace latte

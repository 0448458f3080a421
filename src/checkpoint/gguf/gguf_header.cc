#include "src/checkpoint/gguf/gguf_header.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/math.h"
#include "src/checkpoint/gguf/gguf_types.h"
#include "src/tensor/tensor.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kMaxGgufTensors = 1'000'000;
constexpr uint64_t kLeastTensorBytes = 33;  // a name of one byte, one dimension
constexpr uint64_t kMaxNameBytes = 127;     // 63 in the format, 127 in some programs
constexpr uint32_t kMaxDimensions = 4;
constexpr int64_t kDefaultAlignment = 32;
constexpr int64_t kMaxAlignment = 1 << 20;

// Checks magic number and version.
Status CheckStart(GgufCursor& cursor, std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              std::min<size_t>(bytes.size(), 16));
  if (!text.starts_with(kMagic))
    return Corrupt(fmt::format(
        "{}: not a GGUF file{}: expected 'GGUF' at its start, found {}; download the file again",
        cursor.path(), text.starts_with("version https") ? " (it is a Git LFS pointer)" : "",
        text.empty() ? "an empty file" : fmt::format("'{}'", Printable(text.substr(0, 4)))));
  LATTE_RETURN_IF_ERROR(cursor.Bytes(kMagic.size(), "the magic number"));
  LATTE_ASSIGN_OR_RETURN(const uint32_t version, cursor.Number<uint32_t>("the version"));
  if (version == 2 || version == 3) return {};
  const bool swapped = version != 0 && (version & 0xffffu) == 0;
  return Unsupported(
      fmt::format("{}: expected GGUF version 2 or 3, found {}; {}", cursor.path(),
                  swapped ? "a file for big-endian machines" : fmt::format("version {}", version),
                  swapped        ? "take the little-endian copy of the model"
                  : version == 1 ? "take a newer copy of the model"
                                 : "the file may be damaged, or newer than this version"));
}

Result<int64_t> ReadAlignment(const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "general.alignment";
  const GgufValue* value = metadata.Find(kKey);
  if (value == nullptr) return kDefaultAlignment;
  LATTE_ASSIGN_OR_RETURN(const std::optional<int64_t> alignment, metadata.Int(kKey));
  if (value->type != GgufValueType::kU32 || !IsPow2(*alignment) || *alignment > kMaxAlignment)
    return Corrupt(fmt::format(
        "{}: metadata key '{}': expected a power of two up to {} of type u32, found {}{}; {}",
        metadata.path(), kKey, kMaxAlignment, *alignment,
        value->type == GgufValueType::kU32 ? "" : " of another type", GgufCursor::kDamaged));
  return *alignment;
}

// The shape, outermost dimension first, as everywhere else; the file has the innermost first.
Result<std::vector<int64_t>> ReadGgufShape(GgufCursor& cursor) {
  LATTE_ASSIGN_OR_RETURN(const uint32_t dimensions,
                         cursor.Number<uint32_t>("the number of dimensions"));
  if (dimensions < 1 || dimensions > kMaxDimensions)
    return cursor.Bad(fmt::format("1 to {} dimensions", kMaxDimensions),
                      fmt::format("{}", dimensions));
  std::vector<int64_t> shape(dimensions);
  for (uint32_t i = dimensions; i-- > 0;) {
    LATTE_ASSIGN_OR_RETURN(shape[i], cursor.Number<int64_t>("a dimension"));
    if (shape[i] < 1)
      return cursor.Bad("dimensions from 1 to 2^63 - 1",
                        fmt::format("{}", static_cast<uint64_t>(shape[i])));
  }
  return shape;
}

// The bytes of a tensor of whole blocks.
Result<int64_t> GgufBytes(const GgufCursor& cursor, const GgufType& type,
                          const std::vector<int64_t>& shape) {
  if (shape.back() % type.values != 0)
    return cursor.Bad(fmt::format("rows of whole blocks of {} {} values", type.values, type.name),
                      fmt::format("rows of {} values", shape.back()));
  std::vector<int64_t> factors = shape;
  factors.back() /= type.values;
  factors.push_back(type.bytes);
  // The values are counted too: code above multiplies the dimensions.
  const std::optional<int64_t> bytes = CheckedProduct(factors);
  if (!bytes || !CheckedProduct(shape))
    return cursor.Bad("a size below 2^63 bytes",
                      fmt::format("overflow of {} {}", type.name, ShapeString(shape)));
  return *bytes;
}

// A tensor whose `begin` counts from the start of the data.
Result<StoredTensor> ReadTensorInfo(GgufCursor& cursor, int64_t alignment) {
  StoredTensor tensor;
  LATTE_ASSIGN_OR_RETURN(tensor.shape, ReadGgufShape(cursor));
  LATTE_ASSIGN_OR_RETURN(const uint32_t number, cursor.Number<uint32_t>("the type"));
  const Result<const GgufType*> type = FindGgufType(number);
  if (!type) return cursor.Bad(type.error());
  tensor.dtype_name = (*type)->name;
  LATTE_ASSIGN_OR_RETURN(tensor.bytes, GgufBytes(cursor, **type, tensor.shape));
  LATTE_ASSIGN_OR_RETURN(tensor.begin, cursor.Number<int64_t>("the offset"));
  if (tensor.begin < 0 || tensor.begin % alignment != 0)
    return cursor.Bad(fmt::format("an offset that is a multiple of {}", alignment),
                      fmt::format("{}", static_cast<uint64_t>(tensor.begin)));
  return tensor;
}

Status ReadTensorInfos(GgufCursor& cursor, uint64_t count, int64_t alignment, GgufHeader& header) {
  cursor.SetPart("tensors");
  if (count > static_cast<uint64_t>(cursor.left()) / kLeastTensorBytes)
    return cursor.Bad(fmt::format("{} tensors", count),
                      fmt::format("only {} more bytes", cursor.left()), GgufCursor::kCutShort);
  for (uint64_t i = 0; i < count; ++i) {
    cursor.SetPart(fmt::format("tensor {} of {}", i + 1, count));
    LATTE_ASSIGN_OR_RETURN(const std::string_view name, cursor.String("a name"));
    if (name.empty() || name.size() > kMaxNameBytes)
      return cursor.Bad(fmt::format("a name of 1 to {} bytes", kMaxNameBytes),
                        fmt::format("{} bytes", name.size()));
    cursor.SetPart(fmt::format("tensor '{}'", Printable(name)));
    LATTE_ASSIGN_OR_RETURN(StoredTensor tensor, ReadTensorInfo(cursor, alignment));
    if (!header.tensors.emplace(name, std::move(tensor)).second)
      return cursor.Bad("each tensor once", "the name twice");
  }
  return {};
}

tl::unexpected<Error> BadPlace(const std::string& path, std::string_view name,
                               std::string_view expected, std::string_view found,
                               std::string_view advice) {
  return Corrupt(fmt::format("{}: tensor '{}': expected {}, found {}; {}", path, Printable(name),
                             expected, found, advice));
}

// Makes the tensors' places count from the start of the file, and checks that they lie in it and do
// not overlap. Tensors may come in any order, with holes between them.
Status PlaceTensors(int64_t data_start, int64_t file_bytes, const std::string& path,
                    GgufHeader& header) {
  using Place = std::pair<const std::string, StoredTensor>;
  std::vector<const Place*> places;
  for (Place& place : header.tensors) {
    StoredTensor& tensor = place.second;
    const int64_t data_bytes = std::max<int64_t>(file_bytes - data_start, 0);
    if (tensor.begin > data_bytes || tensor.bytes > data_bytes - tensor.begin)
      return BadPlace(path, place.first,
                      fmt::format("{} bytes within the {} bytes of data", tensor.bytes, data_bytes),
                      fmt::format("offset {}", tensor.begin), GgufCursor::kCutShort);
    tensor.begin += data_start;
    places.push_back(&place);
  }
  std::sort(places.begin(), places.end(),
            [](const Place* a, const Place* b) { return a->second.begin < b->second.begin; });
  for (size_t i = 1; i < places.size(); ++i) {
    const StoredTensor& before = places[i - 1]->second;
    if (places[i]->second.begin < before.begin + before.bytes)
      return BadPlace(path, places[i]->first,
                      fmt::format("data after that of '{}', which ends at byte {}",
                                  Printable(places[i - 1]->first), before.begin + before.bytes),
                      fmt::format("byte {}: tensors overlap", places[i]->second.begin),
                      GgufCursor::kDamaged);
  }
  return {};
}

}  // namespace

Result<GgufHeader> ParseGgufHeader(std::span<const std::byte> bytes, const std::string& path) {
  GgufCursor cursor(bytes, path);
  LATTE_RETURN_IF_ERROR(CheckStart(cursor, bytes));
  LATTE_ASSIGN_OR_RETURN(const uint64_t tensors, cursor.Number<uint64_t>("the number of tensors"));
  LATTE_ASSIGN_OR_RETURN(const uint64_t entries,
                         cursor.Number<uint64_t>("the number of metadata entries"));
  if (tensors > kMaxGgufTensors)
    return cursor.Bad(fmt::format("at most {} tensors", kMaxGgufTensors),
                      fmt::format("{}", tensors));
  GgufHeader header;
  LATTE_ASSIGN_OR_RETURN(header.metadata, GgufMetadata::Read(cursor, entries));
  LATTE_ASSIGN_OR_RETURN(const int64_t alignment, ReadAlignment(header.metadata));
  LATTE_RETURN_IF_ERROR(ReadTensorInfos(cursor, tensors, alignment, header));
  // Cannot overflow: a position in the file and an alignment of at most 2^20.
  const int64_t data_start = RoundUp(cursor.position(), alignment);
  LATTE_RETURN_IF_ERROR(PlaceTensors(data_start, static_cast<int64_t>(bytes.size()), path, header));
  return header;
}

}  // namespace latte

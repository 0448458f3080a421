#include "src/checkpoint/safetensors/safetensors_header.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "src/base/json.h"
#include "src/base/math.h"
#include "src/tensor/tensor.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
// An entry has about seven values. DeepSeek-V3 has 91,000 tensors in all shards together.
constexpr JsonLimits kHeaderLimits = {.max_depth = 4, .max_elements = 2'000'000};
constexpr size_t kMaxMessageBytes = 600;

struct DTypeBits {
  std::string_view name;
  int64_t bits;
};
constexpr DTypeBits kDTypes[] = {
    {"BF16", 16},   {"F16", 16},    {"F32", 32},        {"F64", 64}, {"F8_E4M3", 8},
    {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"BOOL", 8}, {"U8", 8},
    {"I8", 8},      {"U16", 16},    {"I16", 16},        {"U32", 32}, {"I32", 32},
    {"U64", 64},    {"I64", 64},    {"F8_E5M2FNUZ", 8}, {"F4", 4},   {"F6_E2M3", 6},
    {"F6_E3M2", 6}, {"C64", 64},
};

// The likely format of a file that is not safetensors, from its first bytes. Use it only to explain
// an error: the length field of a valid file may look like any of these.
std::string_view Lookalike(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              std::min<size_t>(bytes.size(), 16));
  if (text.starts_with("PK\x03\x04")) return " (it is a zip archive, perhaps a PyTorch file)";
  if (text.starts_with("\x80")) return " (it may be a Python pickle)";
  if (text.starts_with("GGUF")) return " (it is a GGUF file)";
  if (text.starts_with("version https")) return " (it is a Git LFS pointer: download the file)";
  return "";
}

// Makes errors that name the file and the tensor.
class Complaint {
 public:
  Complaint(const std::string& path, std::string_view name) : path_(path), name_(name) {}
  tl::unexpected<Error> operator()(std::string_view expected, std::string_view found) const {
    return Corrupt(fmt::format("{}: tensor '{}': expected {}, found {}", path_, Printable(name_),
                               expected, found));
  }
  // Wraps an error of the JSON reader, whose message may quote the tensor's name.
  tl::unexpected<Error> operator()(const Error& error) const {
    return Corrupt(Printable(error.message, kMaxMessageBytes));
  }

 private:
  const std::string& path_;
  std::string_view name_;
};

// The JSON text between the length field and the data.
Result<std::string_view> HeaderText(std::span<const std::byte> bytes, const std::string& path) {
  if (bytes.size() < kLengthBytes)
    return Corrupt(
        fmt::format("{}: not a safetensors file: too small: expected at least 8 bytes, found {}",
                    path, bytes.size()));
  uint64_t length = 0;
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kMaxHeaderBytes)
    return Corrupt(fmt::format(
        "{}: not a safetensors file{}: expected a header of at most {} bytes, found length {}",
        path, Lookalike(bytes), kMaxHeaderBytes, length));
  if (length > bytes.size() - kLengthBytes)
    return Corrupt(
        fmt::format("{}: expected a header of {} bytes, found only {} bytes after its length", path,
                    length, bytes.size() - kLengthBytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  if (text.empty() || text.front() != '{')
    return Corrupt(
        fmt::format("{}: not a safetensors file: expected a header that begins with '{{', found {}",
                    path, text.empty() ? "an empty one" : "another byte"));
  return text;
}

Result<int64_t> DTypeSize(const std::string& name, const Complaint& bad) {
  for (const DTypeBits& dtype : kDTypes)
    if (dtype.name == name) return dtype.bits;
  return bad("a dtype of the safetensors format", fmt::format("'{}'", Printable(name)));
}

// The number of bytes of `shape` elements of `bits` bits each.
Result<int64_t> BytesOf(std::span<const int64_t> shape, int64_t bits, const Complaint& bad) {
  const auto elements = CheckedProduct(shape);
  const auto total = elements ? CheckedMul(*elements, bits) : std::nullopt;
  if (!total)
    return bad("a size below 2^63 bits", fmt::format("overflow of shape {}", ShapeString(shape)));
  if (*total % 8 != 0) return bad("a whole number of bytes", fmt::format("{} bits", *total));
  return *total / 8;
}

Result<std::vector<int64_t>> ReadShape(const Json& entry, const Complaint& bad) {
  const Result<Json> list = entry.Get("shape");
  if (!list) return bad(list.error());
  if (!list->is_array()) return bad("'shape' to be a list of integers", "another type");
  std::vector<int64_t> shape;
  for (size_t i = 0; i < list->size(); ++i) {
    const Result<int64_t> dim = list->At(i).AsInt();
    if (!dim) return bad(dim.error());
    if (*dim < 0) return bad("dimensions of at least 0", fmt::format("{}", *dim));
    shape.push_back(*dim);
  }
  return shape;
}

// Reads a range [begin, end) and checks that it lies inside a data section of `data_bytes` bytes.
Result<std::pair<int64_t, int64_t>> ReadRange(const Json& entry, int64_t data_bytes,
                                              const Complaint& bad) {
  const Result<Json> list = entry.Get("data_offsets");
  if (!list) return bad(list.error());
  if (!list->is_array() || list->size() != 2)
    return bad("'data_offsets' to be [begin, end]", "something else");
  const Result<int64_t> begin = list->At(0).AsInt();
  if (!begin) return bad(begin.error());
  const Result<int64_t> end = list->At(1).AsInt();
  if (!end) return bad(end.error());
  if (*begin < 0 || *end < *begin)
    return bad("data_offsets with 0 ≤ begin ≤ end", fmt::format("[{}, {}]", *begin, *end));
  if (*end > data_bytes)
    return bad(fmt::format("data that ends within the {} bytes of the data section", data_bytes),
               fmt::format("[{}, {}]; the file may be cut short", *begin, *end));
  return std::pair(*begin, *end);
}

Result<StoredTensor> ReadEntry(const Json& entry, int64_t data_start, int64_t data_bytes,
                               const Complaint& bad) {
  if (!entry.is_object()) return bad("an object", "another type");
  Result<std::string> dtype = entry.GetString("dtype");
  if (!dtype) return bad(dtype.error());
  StoredTensor tensor;
  tensor.dtype_name = std::move(*dtype);
  LATTE_ASSIGN_OR_RETURN(const int64_t bits, DTypeSize(tensor.dtype_name, bad));
  LATTE_ASSIGN_OR_RETURN(tensor.shape, ReadShape(entry, bad));
  LATTE_ASSIGN_OR_RETURN(tensor.bytes, BytesOf(tensor.shape, bits, bad));
  LATTE_ASSIGN_OR_RETURN(const auto range, ReadRange(entry, data_bytes, bad));
  if (range.second - range.first != tensor.bytes)
    return bad(fmt::format("{} bytes for {} {}", tensor.bytes, tensor.dtype_name,
                           ShapeString(tensor.shape)),
               fmt::format("data_offsets of {} bytes", range.second - range.first));
  tensor.begin = data_start + range.first;
  return tensor;
}

Status CheckMetadata(const Json& metadata, const std::string& path) {
  const Complaint bad(path, "__metadata__");
  if (!metadata.is_object()) return bad("an object of strings", "another type");
  return metadata.ForEachMember([&](const std::string&, const Json& value) -> Status {
    if (!value.is_string()) return bad("only strings", "another type");
    return {};
  });
}

// Every byte of the data section must belong to exactly one tensor: otherwise two readers may
// disagree about a file, which can hide data in it.
Status CheckTiling(const std::vector<NamedTensor>& tensors, int64_t data_start, int64_t file_bytes,
                   const std::string& path) {
  int64_t next = data_start;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.begin != next)
      return Complaint(path, name)(
          fmt::format("data to begin at byte {} of the file, where the previous data ends", next),
          fmt::format("byte {}: {}", tensor.begin,
                      tensor.begin < next ? "tensors overlap" : "a hole lies between them"));
    next = tensor.begin + tensor.bytes;
  }
  if (next != file_bytes)
    return Corrupt(
        fmt::format("{}: expected the file to end with its last tensor at byte {}, found "
                    "{} trailing bytes",
                    path, next, file_bytes - next));
  return {};
}

}  // namespace

Result<std::vector<NamedTensor>> ParseSafetensorsHeader(std::span<const std::byte> bytes,
                                                        const std::string& path) {
  LATTE_ASSIGN_OR_RETURN(const std::string_view text, HeaderText(bytes, path));
  const auto file_bytes = static_cast<int64_t>(bytes.size());
  const auto data_start = static_cast<int64_t>(kLengthBytes + text.size());
  const Result<Json> header = Json::Parse(text, path, kHeaderLimits);
  if (!header) return Complaint(path, "")(header.error());
  std::vector<NamedTensor> tensors;
  tensors.reserve(header->size());
  LATTE_RETURN_IF_ERROR(
      header->ForEachMember([&](const std::string& name, const Json& entry) -> Status {
        if (name == "__metadata__") return CheckMetadata(entry, path);
        const Complaint bad(path, name);
        LATTE_ASSIGN_OR_RETURN(StoredTensor tensor,
                               ReadEntry(entry, data_start, file_bytes - data_start, bad));
        tensors.emplace_back(name, std::move(tensor));
        return {};
      }));
  // An empty tensor comes before the tensor that begins at the same offset.
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) {
    return std::pair(a.second.begin, a.second.bytes) < std::pair(b.second.begin, b.second.bytes);
  });
  LATTE_RETURN_IF_ERROR(CheckTiling(tensors, data_start, file_bytes, path));
  return tensors;
}

}  // namespace latte

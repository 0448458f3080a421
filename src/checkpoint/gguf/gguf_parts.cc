#include "src/checkpoint/gguf/gguf_parts.h"

#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "src/base/strings.h"
#include "src/checkpoint/gguf/gguf.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr std::string_view kPartSuffix = ".gguf";
constexpr std::string_view kPartOf = "-of-";
constexpr size_t kPartDigits = 5;
constexpr int64_t kMaxParts = 65'535;  // split.count has 16 bits
constexpr int64_t kMaxTensorsOfParts = 1'000'000;
constexpr int64_t kListedParts = 8;

// The last five characters of `text`, as a number, which are removed.
std::optional<int64_t> TakeLastDigits(std::string_view& text) {
  if (text.size() < kPartDigits) return std::nullopt;
  const std::string_view digits = text.substr(text.size() - kPartDigits);
  if (!IsDigits(digits)) return std::nullopt;
  text.remove_suffix(kPartDigits);
  int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

bool TakeEnd(std::string_view& text, std::string_view end) {
  const bool there = text.ends_with(end);
  if (there) text.remove_suffix(end.size());
  return there;
}

Result<int64_t> SplitKey(const GgufMetadata& metadata, std::string_view key, int64_t max) {
  LATTE_ASSIGN_OR_RETURN(const std::optional<int64_t> value, metadata.Int(key));
  if (!value)
    return Corrupt(fmt::format("{}: metadata key '{}' is missing, which parts of a model have",
                               metadata.path(), key));
  if (*value < 0 || *value > max)
    return Corrupt(fmt::format("{}: metadata key '{}': expected 0 to {}, found {}", metadata.path(),
                               key, max, *value));
  return *value;
}

Status CheckPartsPresent(const GgufPart& set) {
  std::string missing;
  int64_t count = 0;
  for (int64_t i = 1; i <= set.count; ++i) {
    std::error_code error;
    if (std::filesystem::exists(set.Path(i), error)) continue;
    if (++count > kListedParts) continue;
    const std::string name = std::filesystem::path(set.Path(i)).filename().string();
    missing += fmt::format("{}'{}'", count == 1 ? "" : ", ", Printable(name));
  }
  if (count == 0) return {};
  if (count > kListedParts) missing += fmt::format(" and {} more", count - kListedParts);
  return NotFound(
      fmt::format("{}: expected {} parts in its folder, found {}; missing: {}; download them too",
                  set.Path(set.number), set.count, set.count - count, missing));
}

}  // namespace

std::string GgufPart::Path(int64_t i) const {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, i, count);
}

std::optional<GgufPart> ParseGgufPart(const std::string& path) {
  std::string_view text = path;
  if (!TakeEnd(text, kPartSuffix)) return std::nullopt;
  const std::optional<int64_t> count = TakeLastDigits(text);
  if (!count || !TakeEnd(text, kPartOf)) return std::nullopt;
  const std::optional<int64_t> number = TakeLastDigits(text);
  if (!number || !TakeEnd(text, "-")) return std::nullopt;
  if (*number < 1 || *number > *count) return std::nullopt;
  return GgufPart{std::string(text), *number, *count};
}

Result<GgufPlace> ReadGgufPlace(const GgufMetadata& metadata) {
  GgufPlace out;
  if (metadata.Find("split.count") == nullptr) return out;
  LATTE_ASSIGN_OR_RETURN(const int64_t count, SplitKey(metadata, "split.count", kMaxParts));
  if (count < 2) return out;
  LATTE_ASSIGN_OR_RETURN(const int64_t index, SplitKey(metadata, "split.no", count - 1));
  LATTE_ASSIGN_OR_RETURN(out.tensors,
                         SplitKey(metadata, "split.tensors.count", kMaxTensorsOfParts));
  out.number = index + 1;
  out.count = count;
  return out;
}

Result<GgufFiles> GgufFiles::OpenSet(const std::string& path, const GgufPlace& place) {
  const std::optional<GgufPart> set = ParseGgufPart(path);
  if (!set || set->number != place.number || set->count != place.count)
    return Corrupt(fmt::format(
        "{}: expected the name NAME-{:05}-of-{:05}.gguf, because its metadata say that it is part "
        "{} of {}, found another; give all parts the names that they were published with",
        path, place.number, place.count, place.number, place.count));
  LATTE_RETURN_IF_ERROR(CheckPartsPresent(*set));
  GgufFiles out;
  for (int64_t i = 1; i <= set->count; ++i) {
    LATTE_ASSIGN_OR_RETURN(GgufMetadata metadata, out.Add(set->Path(i)));
    LATTE_ASSIGN_OR_RETURN(const GgufPlace own, ReadGgufPlace(metadata));
    if (own.number != i || own.count != place.count || own.tensors != place.tensors)
      return Corrupt(fmt::format(
          "{}: expected part {} of {}, with {} tensors in all, found part {} of {}, with {}; "
          "download the parts of one model into a separate folder",
          set->Path(i), i, place.count, place.tensors, own.number, own.count, own.tensors));
    if (i == 1) out.metadata_ = std::move(metadata);
    if (static_cast<int64_t>(out.stored_.tensors.size()) > place.tensors) break;
  }
  if (static_cast<int64_t>(out.stored_.tensors.size()) == place.tensors) return out;
  return Corrupt(fmt::format(
      "{}: expected {} tensors in all parts, as 'split.tensors.count' says, found {} in "
      "{} parts; download the model again",
      path, place.tensors, out.stored_.tensors.size(), out.stored_.files.size()));
}

}  // namespace latte

#include "src/hub/repo/listing.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "src/base/json.h"
#include "src/base/strings.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 50;
constexpr size_t kMostPathBytes = 1024;

bool IsHex(std::string_view text, size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<int64_t> Size(const Json& object, const std::string& where) {
  LATTE_ASSIGN_OR_RETURN(const int64_t size, object.GetInt("size"));
  if (size < 0 || size > kMostBytes)
    return Corrupt(
        fmt::format("{}: expected a size of 0 to {} bytes, found {}", where, kMostBytes, size));
  return size;
}

Result<HubFile> ParseFile(const Json& sibling, const std::string& where) {
  HubFile out;
  LATTE_ASSIGN_OR_RETURN(out.path, sibling.GetString("rfilename"));
  const std::string file = fmt::format("{}: file '{}'", where, Printable(out.path, 200));
  if (!IsSafePath(out.path))
    return Corrupt(file +
                   ": expected a name below the model's folder, without '..', backslashes "
                   "and control characters; nothing is downloaded");
  LATTE_ASSIGN_OR_RETURN(out.size, Size(sibling, file));
  const std::optional<Json> large = sibling.Find("lfs");
  if (large) {
    LATTE_ASSIGN_OR_RETURN(const int64_t size, Size(*large, file));
    if (size != out.size)
      return Corrupt(
          fmt::format("{}: expected one size, found {} and {} bytes", file, out.size, size));
    LATTE_ASSIGN_OR_RETURN(out.oid, large->GetString("sha256"));
  } else {
    LATTE_ASSIGN_OR_RETURN(out.oid, sibling.GetStringOr("blobId", ""));
  }
  if (!IsHex(out.oid, large ? 64 : 40))
    return Corrupt(
        fmt::format("{}: expected a checksum of {} hexadecimal digits, found '{}'; is "
                    "HF_ENDPOINT a Hub?",
                    file, large ? 64 : 40, Printable(out.oid, 80)));
  return out;
}

// No name twice, and none that is also a folder.
Status CheckNames(const std::vector<HubFile>& files, const std::string& where) {
  std::set<std::string_view> names;
  for (const HubFile& file : files)
    if (!names.insert(file.path).second)
      return Corrupt(fmt::format("{}: file '{}' is listed twice", where, file.path));
  for (const std::string_view name : names)
    for (size_t at = name.find('/'); at != std::string_view::npos; at = name.find('/', at + 1))
      if (names.contains(name.substr(0, at)))
        return Corrupt(
            fmt::format("{}: '{}' is listed as a file and as a folder", where, name.substr(0, at)));
  return {};
}

// Files of one checksum are one content, and have one size.
Status CheckSizes(const std::vector<HubFile>& files, const std::string& where) {
  std::map<std::string_view, const HubFile*> contents;
  for (const HubFile& file : files) {
    const HubFile& first = *contents.emplace(file.oid, &file).first->second;
    if (first.size != file.size)
      return Corrupt(
          fmt::format("{}: files '{}' and '{}' of one checksum: expected one size, found "
                      "{} and {} bytes",
                      where, first.path, file.path, first.size, file.size));
  }
  return {};
}

}  // namespace

bool IsSafePath(std::string_view path) {
  if (path.empty() || path.size() > kMostPathBytes) return false;
  for (const char c : path)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\') return false;
  return std::ranges::all_of(Pieces(path, '/'), [](std::string_view part) {
    return !part.empty() && part != "." && part != ".." && part.size() <= 255;
  });
}

Result<Listing> ParseListing(std::string_view json, const std::string& where) {
  LATTE_ASSIGN_OR_RETURN(const Json root, Json::Parse(json, where, {.max_depth = 32}));
  Listing out;
  LATTE_ASSIGN_OR_RETURN(out.commit, root.GetString("sha"));
  if (!IsHex(out.commit, 40))
    return Corrupt(fmt::format("{}: sha: expected a commit of 40 hexadecimal digits, found '{}'",
                               where, Printable(out.commit, 80)));
  LATTE_ASSIGN_OR_RETURN(const Json siblings, root.Get("siblings"));
  if (!siblings.is_array()) return Corrupt(where + ": siblings: expected an array");
  for (size_t i = 0; i < siblings.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(HubFile file, ParseFile(siblings.At(i), where));
    out.files.push_back(std::move(file));
  }
  LATTE_RETURN_IF_ERROR(CheckNames(out.files, where));
  LATTE_RETURN_IF_ERROR(CheckSizes(out.files, where));
  return out;
}

}  // namespace latte

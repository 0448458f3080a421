#include "src/checkpoint/safetensors/safetensors.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "src/base/file.h"
#include "src/checkpoint/safetensors/safetensors_header.h"
#include "src/checkpoint/safetensors/safetensors_index.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr int64_t kMaxIndexBytes = 64 << 20;  // DeepSeek-V3's is 9 MB
constexpr size_t kMaxTensors = 1'000'000;
// Limits a folder's name and the names of missing shards together. The rest of the message needs
// room too: Fail cuts the middle of a longer message, and the number of missing shards with it.
constexpr size_t kMaxListedBytes = 1900;

// The file names in `dir`, sorted.
Result<std::set<std::string>> ListDir(const std::string& dir) {
  std::error_code error;
  std::filesystem::directory_iterator it(dir, error);
  std::set<std::string> names;
  while (!error && it != std::filesystem::directory_iterator()) {
    names.insert(it->path().filename().string());
    it.increment(error);
  }
  if (error)
    return Fail(Code::kUnavailable,
                fmt::format("{}: the folder cannot be listed: {}", dir, error.message()));
  return names;
}

tl::unexpected<Error> MissingShards(const std::string& dir, const std::vector<std::string>& names) {
  const size_t room = kMaxListedBytes - std::min(dir.size(), kMaxListedBytes / 2);
  std::string text;
  size_t listed = 0;
  for (; listed < names.size(); ++listed) {
    const std::string name =
        fmt::format("{}'{}'", listed == 0 ? "" : ", ", Printable(names[listed]));
    if (text.size() + name.size() > room) break;
    text += name;
  }
  if (listed < names.size()) text += fmt::format(" and {} more", names.size() - listed);
  return NotFound(fmt::format(
      "{}: {} missing: {}; download the checkpoint again", dir,
      names.size() == 1 ? "1 shard is" : fmt::format("{} shards are", names.size()), text));
}

Result<ShardMap> ReadIndex(const std::string& path) {
  LATTE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxIndexBytes));
  return ParseSafetensorsIndex(text, path);
}

// The name of one shard: "model-00002-of-00005.safetensors" is {"model-", 2, 5}.
struct ShardName {
  int64_t number = 0;
  int64_t of = 0;
  size_t digits = 0;    // digits of the number
  std::string of_text;  // total, as spelled
};

std::optional<int64_t> ParseDigits(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<ShardName> ParseShardName(std::string_view name) {
  constexpr std::string_view kPrefix = "model-";
  constexpr std::string_view kOf = "-of-";
  constexpr std::string_view kSuffix = ".safetensors";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  if (name.size() < kPrefix.size() + kSuffix.size()) return std::nullopt;
  name = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  const size_t of = name.find(kOf);
  if (of == std::string_view::npos) return std::nullopt;
  const auto number = ParseDigits(name.substr(0, of));
  const auto total = ParseDigits(name.substr(of + kOf.size()));
  if (!number || !total) return std::nullopt;
  return ShardName{*number, *total, of, std::string(name.substr(of + kOf.size()))};
}

// The shards of a folder without an index. The names tell their total number.
Result<ShardMap> ScanShards(const std::string& dir, const std::set<std::string>& names) {
  ShardMap shards;
  std::set<int64_t> numbers;
  std::optional<ShardName> first;
  for (const std::string& name : names) {
    const std::optional<ShardName> shard = ParseShardName(name);
    if (!shard) continue;
    if (first && first->of != shard->of)
      return Corrupt(
          fmt::format("{}: expected shards of one checkpoint, found both -of-{} and "
                      "-of-{}",
                      dir, first->of_text, shard->of_text));
    first = first ? first : shard;
    numbers.insert(shard->number);
    shards[name];
  }
  if (!first) return shards;
  if (first->of > static_cast<int64_t>(kMaxTensors))
    return Corrupt(fmt::format("{}: expected at most {} shards, found -of-{}", dir, kMaxTensors,
                               first->of_text));
  std::vector<std::string> missing;
  for (int64_t i = 1; i <= first->of; ++i)
    if (!numbers.contains(i))
      missing.push_back(
          fmt::format("model-{:0{}}-of-{}.safetensors", i, first->digits, first->of_text));
  if (!missing.empty()) return MissingShards(dir, missing);
  return shards;
}

// The files to open, and the tensors that an index promises in each.
Result<ShardMap> FindShards(const std::string& dir) {
  if (!IsDirectory(dir)) {
    if (IsRegularFile(dir))
      return InvalidArgument(fmt::format("{}: expected a model folder, found a file", dir));
    return NotFound(fmt::format("{}: expected a model folder, found nothing there", dir));
  }
  LATTE_ASSIGN_OR_RETURN(const std::set<std::string> names, ListDir(dir));
  if (names.contains(std::string(kSingle))) return ShardMap{{std::string(kSingle), {}}};
  if (names.contains(std::string(kIndex))) return ReadIndex(fmt::format("{}/{}", dir, kIndex));
  LATTE_ASSIGN_OR_RETURN(ShardMap shards, ScanShards(dir, names));
  if (shards.empty())
    return NotFound(fmt::format("{}: expected {} or {}, found neither", dir, kSingle, kIndex));
  return shards;
}

// A name that leads nowhere (a dangling link) counts as missing.
Status CheckAllPresent(const std::string& dir, const ShardMap& shards) {
  std::vector<std::string> missing;
  for (const auto& shard : shards) {
    std::error_code error;
    if (!std::filesystem::exists(fmt::format("{}/{}", dir, shard.first), error))
      missing.push_back(shard.first);
  }
  if (missing.empty()) return {};
  return MissingShards(dir, missing);
}

}  // namespace

Result<TensorFiles> OpenSafetensors(const std::string& dir) {
  LATTE_ASSIGN_OR_RETURN(const ShardMap shards, FindShards(dir));
  LATTE_RETURN_IF_ERROR(CheckAllPresent(dir, shards));
  TensorFiles out;
  for (const auto& [shard, promised] : shards) {
    const std::string path = fmt::format("{}/{}", dir, shard);
    LATTE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
    LATTE_ASSIGN_OR_RETURN(std::vector<NamedTensor> tensors,
                           ParseSafetensorsHeader(file->bytes(), path));
    const auto index = static_cast<int64_t>(out.files.size());
    out.files.push_back(std::move(file));
    for (auto& [name, tensor] : tensors) {
      tensor.file_index = index;
      const auto [at, is_new] = out.tensors.try_emplace(name, std::move(tensor));
      if (!is_new)
        return Corrupt(fmt::format("{}: tensor '{}' stands in two shards, here and in {}", path,
                                   Printable(name),
                                   out.files[static_cast<size_t>(at->second.file_index)]->path()));
    }
    if (out.tensors.size() > kMaxTensors)
      return Corrupt(fmt::format("{}: expected at most {} tensors, found more", dir, kMaxTensors));
    for (const std::string& name : promised) {
      const auto found = out.tensors.find(name);
      if (found == out.tensors.end() || found->second.file_index != index)
        return Corrupt(fmt::format("{}: expected tensor '{}' as {} says, found no such tensor",
                                   path, Printable(name), kIndex));
    }
  }
  return out;
}

}  // namespace latte

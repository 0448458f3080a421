#include "src/hub/repo/selection.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

namespace latte {
namespace {

constexpr std::array<std::string_view, 7> kTopFiles = {
    "*.safetensors", "*.json", "*.jinja", "*.model", "*.txt", "README*", "LICENSE*"};

// Formats of weights that Latte does not read, to say what a repository has instead.
constexpr std::array<std::string_view, 6> kOtherWeights = {".gguf", ".bin",  ".pth",
                                                           ".pt",   ".onnx", ".npz"};

bool MatchesAny(std::string_view path, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return MatchesPattern(path, pattern); });
}

bool HasWeights(const std::vector<HubFile>& files) {
  return std::any_of(files.begin(), files.end(),
                     [](const HubFile& file) { return file.path.ends_with(".safetensors"); });
}

// "; it has *.gguf" or nothing.
std::string OtherWeights(const Listing& listing) {
  std::set<std::string> found;
  for (const HubFile& file : listing.files)
    for (const std::string_view end : kOtherWeights)
      if (file.path.ends_with(end)) found.insert(fmt::format("*{}", end));
  return found.empty() ? "" : fmt::format("; it has {}", fmt::join(found, ", "));
}

}  // namespace

bool MatchesPattern(std::string_view path, std::string_view pattern) {
  std::string glob(pattern);
  if (glob.ends_with('/')) glob += '*';
  return fnmatch(glob.c_str(), std::string(path).c_str(), 0) == 0;
}

bool IsReadByLatte(std::string_view path) {
  if (path.find('/') != std::string_view::npos)
    return MatchesPattern(path, "additional_chat_templates/*.jinja");
  if (MatchesPattern(path, "consolidated*.safetensors")) return false;
  return std::any_of(kTopFiles.begin(), kTopFiles.end(),
                     [&](std::string_view pattern) { return MatchesPattern(path, pattern); });
}

Result<std::vector<HubFile>> SelectFiles(const Listing& listing, const Selection& selection) {
  std::vector<HubFile> out;
  for (const HubFile& file : listing.files) {
    const bool included = selection.include.empty() ? IsReadByLatte(file.path)
                                                    : MatchesAny(file.path, selection.include);
    if (included && !MatchesAny(file.path, selection.exclude)) out.push_back(file);
  }
  if (out.empty())
    return NotFound(
        fmt::format("no file of the repository's {} is chosen; see --include, "
                    "--exclude and --dry-run",
                    listing.files.size()));
  if (selection.include.empty() && selection.exclude.empty() && !HasWeights(out))
    return NotFound(
        fmt::format("the repository has no weights in *.safetensors, which Latte reads{}; "
                    "choose another repository, or files with --include",
                    OtherWeights(listing)));
  std::stable_partition(out.begin(), out.end(),
                        [](const HubFile& file) { return !file.is_large(); });
  return out;
}

}  // namespace latte

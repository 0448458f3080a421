#include "src/hub/repo/selection.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include "src/checkpoint/gguf/gguf_sets.h"

namespace latte {
namespace {

constexpr std::array<std::string_view, 7> kTopFiles = {
    "*.safetensors", "*.json", "*.jinja", "*.model", "*.txt", "README*", "LICENSE*"};

// Formats of weights, to say what a repository has.
constexpr std::array<std::string_view, 7> kWeights = {".safetensors", ".gguf", ".bin", ".pth",
                                                      ".pt",          ".onnx", ".npz"};

bool MatchesAny(std::string_view path, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return MatchesPattern(path, pattern); });
}

bool IsWeights(const HubFile& file) {
  return file.path.ends_with(".safetensors") && IsReadByLatte(file.path);
}

// "; it has *.gguf" or nothing.
std::string OtherWeights(const Listing& listing) {
  std::set<std::string> found;
  for (const HubFile& file : listing.files)
    for (const std::string_view end : kWeights)
      if (file.path.ends_with(end)) found.insert(fmt::format("*{}", end));
  return found.empty() ? "" : fmt::format("; it has {}", fmt::join(found, ", "));
}

// The GGUF models among `files`.
std::vector<GgufSet> GgufModelsOf(const std::vector<HubFile>& files) {
  std::vector<SizedFile> sized;
  for (const HubFile& file : files) sized.push_back({file.path, file.size});
  return GgufSetsOf(sized);
}

// The files of the GGUF model that `selection` means and, if no pattern chooses files, those about
// it.
Result<SelectedFiles> SelectGguf(const std::vector<HubFile>& files,
                                 const std::vector<GgufSet>& models, const Selection& selection,
                                 const std::string& repo) {
  const Result<GgufSet> chosen = ChooseGgufSet(models, selection.quant, repo);
  if (!chosen)
    return Fail(chosen.error().code, fmt::format("{}: {}", repo, chosen.error().message));
  SelectedFiles out;
  out.gguf = chosen->files.front();
  out.quant = chosen->quant;
  const std::set<std::string_view> parts(chosen->files.begin(), chosen->files.end());
  for (const HubFile& file : files)
    if (parts.contains(file.path) ||
        (selection.include.empty() &&
         (MatchesPattern(file.path, "README*") || MatchesPattern(file.path, "LICENSE*")) &&
         file.path.find('/') == std::string::npos))
      out.files.push_back(file);
  return out;
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

Result<SelectedFiles> SelectFiles(const Listing& listing, const Selection& selection,
                                  const std::string& repo) {
  std::vector<HubFile> left;
  for (const HubFile& file : listing.files)
    if ((selection.include.empty() || MatchesAny(file.path, selection.include)) &&
        !MatchesAny(file.path, selection.exclude))
      left.push_back(file);
  const bool any_weights = std::any_of(listing.files.begin(), listing.files.end(), IsWeights);
  const std::vector<GgufSet> models = GgufModelsOf(left);
  if (!selection.quant.empty() && models.empty())
    return NotFound(
        fmt::format("{}: expected GGUF files because of ':{}', found none{}; write {} "
                    "without ':' for other files",
                    repo, selection.quant, OtherWeights(listing), repo));
  SelectedFiles out;
  if (!selection.quant.empty() || (selection.include.empty() && !any_weights && !models.empty())) {
    LATTE_ASSIGN_OR_RETURN(out, SelectGguf(left, models, selection, repo));
  } else {
    for (const HubFile& file : left)
      if (!selection.include.empty() || IsReadByLatte(file.path)) out.files.push_back(file);
  }
  if (out.files.empty())
    return NotFound(
        fmt::format("no file of the repository's {} is chosen; see --include, "
                    "--exclude and --dry-run",
                    listing.files.size()));
  if (selection.include.empty() && selection.exclude.empty() && !any_weights && out.gguf.empty())
    return NotFound(
        fmt::format("the repository has no weights in *.safetensors or *.gguf, which Latte "
                    "reads{}; choose another repository, or files with --include",
                    OtherWeights(listing)));
  std::stable_partition(out.files.begin(), out.files.end(),
                        [](const HubFile& file) { return !file.is_large(); });
  return out;
}

}  // namespace latte

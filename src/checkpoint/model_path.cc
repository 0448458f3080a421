#include "src/checkpoint/model_path.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/fields/suggest.h"
#include "src/base/file.h"
#include "src/checkpoint/gguf/gguf.h"
#include "src/checkpoint/hub_cache.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

// The file that contains this code: liblatte or the program; empty if unknown.
fs::path LoadedFrom() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&ResolveModelPath), &info) == 0) return {};
  std::error_code ignored;
  return fs::canonical(info.dli_fname, ignored);
}

constexpr std::string_view kBundled[] = {"tiny", "tiny-sparse"};

// Whether `model` comes with Latte.
bool IsBundled(std::string_view model) {
  return std::find(std::begin(kBundled), std::end(kBundled), model) != std::end(kBundled);
}

// Folders that may be the bundled model `name`.
std::vector<fs::path> BundledPlaces(const std::string& name) {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<fs::path> places = {program.parent_path() / "share/latte/models" / name};
  // build/<preset>/latte and build/<preset>/<folder>/<test> are two to four levels below the
  // repository.
  fs::path up = program;
  for (int level = 0; level < 5 && up.has_relative_path(); ++level, up = up.parent_path())
    places.push_back(up / "models" / name);
  // For an installed library: <prefix>/lib or <prefix>/lib/<machine>.
  up = LoadedFrom().parent_path();
  for (int level = 0; level < 2 && up.has_relative_path(); ++level) {
    up = up.parent_path();
    places.push_back(up / "share/latte/models" / name);
  }
  return places;
}

// The snapshots of a cached model, sorted.
std::vector<std::string> Snapshots(const fs::path& base) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(base / "snapshots", error), end; !error && it != end;
       it.increment(error))
    if (IsDirectory(it->path().string())) names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// The commit in refs/<revision>; empty if there is none.
std::string CommitOf(const fs::path& base, const std::string& revision) {
  Result<std::string> commit = ReadFile((base / "refs" / revision).string(), 4096);
  if (!commit) return "";
  while (!commit->empty() && std::isspace(static_cast<unsigned char>(commit->back())) != 0)
    commit->pop_back();
  return *commit;
}

// The error for a cached `repo` without the snapshot that is meant.
tl::unexpected<Error> NoSnapshotIsMeant(const std::string& repo, const fs::path& ref,
                                        const std::string& commit,
                                        const std::vector<std::string>& names) {
  constexpr size_t kListed = 8;
  const std::span<const std::string> listed(names.data(), std::min(names.size(), kListed));
  return NotFound(fmt::format(
      "model '{}': {} {}; found {} in {}: {}{}; give the folder of one of them, or download it "
      "with "
      "`latte pull {}`",
      repo, ref.string(),
      !commit.empty()     ? fmt::format("names '{}', which is not there", Printable(commit, 60))
      : names.size() == 1 ? "is missing"
                          : "is missing and several snapshots are there",
      names.size() == 1 ? "one snapshot" : fmt::format("{} snapshots", names.size()),
      (ref.parent_path().parent_path() / "snapshots").string(), fmt::join(listed, ", "),
      names.size() > kListed ? ", …" : "", repo));
}

// Whether the file begins as GGUF files do. One that cannot be read does not.
bool IsGguf(const std::string& file) {
  char magic[4] = {};
  std::ifstream(file, std::ios::binary).read(magic, sizeof magic);
  return std::string_view(magic, sizeof magic) == "GGUF";
}

// The models in the GGUF files of a folder: whole files and first parts, sorted. Files that go with a
// model, such as its images' encoder, are left out by their names.
std::vector<std::string> GgufModelsIn(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const std::string path = it->path().string();
    if (!IsGgufPath(path) || name.starts_with("mmproj") || name.starts_with("imatrix") ||
        name.starts_with("mtp-"))
      continue;
    const std::optional<GgufPart> part = ParseGgufPart(path);
    if (!part || part->number == 1) out.push_back(path);
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool HasSafetensors(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".safetensors") return true;
  return false;
}

// The model of a folder: the folder itself, or the GGUF file in it. GGUF files may come with a config.json,
// but not with other weights.
Result<std::string> FromFolder(const std::string& folder) {
  const std::vector<std::string> models = GgufModelsIn(folder);
  if (models.empty() || HasSafetensors(folder)) return folder;
  if (models.size() == 1) return models.front();
  constexpr size_t kListed = 8;
  const std::span<const std::string> listed(models.data(), std::min(models.size(), kListed));
  return InvalidArgument(fmt::format("{}: expected one GGUF model, found {}: {}{}; give the file",
                                     folder, models.size(), fmt::join(listed, ", "),
                                     models.size() > kListed ? ", …" : ""));
}

// The snapshot of `model` in the hub cache: models--org--name/snapshots/<commit> with the commit of
// refs/main or of the revision that `model` names, which may be a commit itself. A cache that was
// filled by commit or copied may have no refs: the only snapshot counts.
Result<std::string> FromHubCache(const std::string& model, const RepoAndRevision& name,
                                 const std::string& why_no_folder) {
  const fs::path base = fs::path(HubCacheFolder()) / RepoFolderName(name.repo);
  const fs::path snapshots = base / "snapshots";
  const std::string revision = name.revision.empty() ? "main" : name.revision;
  const std::string commit = CommitOf(base, revision);
  for (const std::string& folder : {commit, name.revision})
    if (!folder.empty() && folder.find('/') == std::string::npos &&
        IsDirectory((snapshots / folder).string()))
      return FromFolder((snapshots / folder).string());
  const std::vector<std::string> names = Snapshots(base);
  if (commit.empty() && name.revision.empty() && names.size() == 1)
    return FromFolder((snapshots / names.front()).string());
  if (!names.empty()) return NoSnapshotIsMeant(model, base / "refs" / revision, commit, names);
  std::error_code ignored;
  return NotFound(fmt::format(
      "model '{}': neither a folder (in {}: {}) nor a snapshot in the Hugging Face cache (looked "
      "for {}); if a folder is meant, give its path from there or from /; if a repository, "
      "download it with `latte pull {}`{}",
      model, fs::current_path(ignored).string(), why_no_folder, snapshots.string(), model,
      DidYouMean(model, KnownModels(model))));
}

// The reason why `path` cannot be read.
std::string WhyMissing(const std::string& path) {
  std::error_code error;
  const bool there = fs::exists(path, error);
  return there ? "neither a folder nor a regular file" : error ? error.message() : "no such folder";
}

// For a name that is neither a folder nor a repository: the model that may be meant, or where to look.
std::string NextStep(const std::string& model) {
  if (model.find_first_of(" \n") != std::string::npos) return "; a prompt is given with -p";
  for (const std::string& repo : CachedRepos())
    if (repo.ends_with("/" + model)) return fmt::format("; did you mean {}?", repo);
  const std::string meant = DidYouMean(model, KnownModels(model));
  return meant.empty() ? "; `latte list` shows the models that are here" : meant;
}

// The error for a file in the place of a folder.
std::string NoFolder(const std::string& file) {
  const std::string expected = fmt::format(
      "model '{}': expected a Hugging Face folder (config.json, tokenizer.json, "
      "*.safetensors), a .gguf file or a config.json, found ",
      file);
  std::error_code unreadable;
  if (fs::file_size(file, unreadable) == 0 && !unreadable) return expected + "an empty file";
  if (IsGguf(file)) return expected + "a GGUF file; give it a name that ends with .gguf";
  if (file.ends_with(".safetensors") || file.ends_with(".safetensors.index.json"))
    return expected + "a file of such a folder; give the folder";
  return expected + "another file";
}

}  // namespace

Result<std::string> ResolveModelPath(const std::string& model) {
  if (IsDirectory(model)) return FromFolder(model);
  if (IsRegularFile(model) && model.ends_with(".json")) return model;
  if (IsGgufPath(model) && IsGguf(model)) return model;
  if (IsRegularFile(model)) return NotFound(NoFolder(model));
  if (IsBundled(model)) {
    std::vector<std::string> tried;
    for (const fs::path& place : BundledPlaces(model)) {
      if (IsRegularFile((place / "config.json").string())) return place.string();
      tried.push_back(place.string());
    }
    return NotFound(
        fmt::format("the model '{}' was not found next to the program or liblatte; looked for {}",
                    model, fmt::join(tried, ", ")));
  }
  const RepoAndRevision name = SplitRevision(model);
  if (IsRepoId(name.repo) && (name.repo == model || IsRevision(name.revision)))
    return FromHubCache(model, name, WhyMissing(model));
  return NotFound(fmt::format(
      "model '{}': expected a Hugging Face folder, a .gguf file, a repository id (org/name or "
      "org/name@revision) in the local cache, "
      "tiny or tiny-sparse, found {}{}",
      model, WhyMissing(model), NextStep(model)));
}

std::vector<std::string> BundledModels() { return {std::begin(kBundled), std::end(kBundled)}; }

std::vector<std::string> KnownModels(const std::string& like) {
  std::vector<std::string> out = BundledModels();
  for (std::string& repo : CachedRepos()) out.push_back(std::move(repo));
  const fs::path folder = fs::path(like).parent_path();
  std::error_code error;
  size_t left = 1000;
  for (fs::directory_iterator it(folder.empty() ? "." : folder, error), end;
       !error && it != end && left > 0; it.increment(error), --left)
    out.push_back((folder / it->path().filename()).string());
  return out;
}

}  // namespace latte

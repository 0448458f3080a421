#include "src/checkpoint/model_path.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/fields/suggest.h"
#include "src/base/file.h"
#include "src/checkpoint/gguf/gguf.h"
#include "src/checkpoint/gguf/gguf_sets.h"
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
  // For an installed library, <prefix>/lib or <prefix>/lib/<machine>, and for build/<preset> of a
  // repository, which another program may have loaded.
  up = LoadedFrom().parent_path();
  for (int level = 0; level < 2 && up.has_relative_path(); ++level) {
    up = up.parent_path();
    places.push_back(up / "share/latte/models" / name);
    places.push_back(up / "models" / name);
  }
  return places;
}

// The folder of a repository in the cache.
fs::path RepoFolderIn(const HubName& name) {
  return fs::path(HubCacheFolder()) / RepoFolderName(name.repo);
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

// The GGUF models in a folder or, if `below`, also in the folders below it. Links to folders are
// not followed.
std::vector<GgufSet> GgufModelsIn(const std::string& folder, bool below) {
  std::vector<SizedFile> files;
  std::error_code error;
  constexpr auto kSkip = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator it(folder, kSkip, error), end; !error && it != end;
       it.increment(error)) {
    if (!below) it.disable_recursion_pending();
    const fs::path path = it->path();
    std::error_code unreadable;
    const auto bytes = IsGgufPath(path.string()) ? fs::file_size(path, unreadable) : 0;
    if (IsGgufPath(path.string()) && !unreadable)
      files.push_back({path.lexically_relative(folder).string(), static_cast<int64_t>(bytes)});
  }
  return GgufSetsOf(files);
}

bool HasSafetensors(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".safetensors") return true;
  return false;
}

// The reason why `path` cannot be read.
std::string WhyMissing(const std::string& path) {
  std::error_code error;
  const bool there = fs::exists(path, error);
  if (there) return "neither a folder nor a regular file";
  return error ? error.message() : IsGgufPath(path) ? "no such file" : "no such folder";
}

// The file, or first part, of a model in `folder`.
std::string PathOfFirst(const std::string& folder, const GgufSet& model) {
  return (fs::path(folder) / model.files.front()).string();
}

// The model of a folder: the folder itself, or the GGUF file in it. GGUF files may come with a
// config.json, but not with other weights.
Result<std::string> FromFolder(const std::string& folder) {
  const std::vector<GgufSet> models = GgufModelsIn(folder, false);
  if (models.empty() || HasSafetensors(folder)) return folder;
  if (models.size() == 1) return PathOfFirst(folder, models.front());
  constexpr size_t kListed = 8;
  std::vector<std::string> listed;
  for (const GgufSet& model : models)
    if (listed.size() < kListed) listed.push_back(PathOfFirst(folder, model));
  return InvalidArgument(fmt::format("{}: expected one GGUF model, found {}: {}{}; give the file",
                                     folder, models.size(), fmt::join(listed, ", "),
                                     models.size() > kListed ? ", …" : ""));
}

// The model that `name` means in a snapshot.
Result<std::string> FromSnapshot(const std::string& model, const HubName& name,
                                 const std::string& snapshot) {
  if (name.quant.empty() && HasSafetensors(snapshot)) return snapshot;
  const std::vector<GgufSet> models = GgufModelsIn(snapshot, true);
  if (name.quant.empty() && models.empty()) return snapshot;
  const Result<GgufSet> chosen = ChooseGgufSet(models, name.quant, name.repo);
  if (chosen) return PathOfFirst(snapshot, *chosen);
  const bool absent = chosen.error().code == Code::kNotFound;
  return Fail(chosen.error().code,
              fmt::format("model '{}': {}; looked in {}{}", model, chosen.error().message, snapshot,
                          absent ? fmt::format("; `latte pull {}` downloads it", model) : ""));
}

// The snapshot of `name` in the hub cache: models--org--name/snapshots/<commit> with the commit of
// refs/main or of the revision that `name` has, which may be a commit itself. A cache that was
// filled by commit or copied may have no refs: the only snapshot counts. Empty: there is none.
std::string SnapshotOf(const HubName& name) {
  const fs::path base = RepoFolderIn(name);
  const std::string commit = CommitOf(base, name.revision.empty() ? "main" : name.revision);
  for (const std::string& folder : {commit, name.revision})
    if (!folder.empty() && folder.find('/') == std::string::npos &&
        IsDirectory((base / "snapshots" / folder).string()))
      return (base / "snapshots" / folder).string();
  const std::vector<std::string> names = Snapshots(base);
  const bool only = commit.empty() && name.revision.empty() && names.size() == 1;
  return only ? (base / "snapshots" / names.front()).string() : "";
}

// The error for a repository of which no snapshot is meant, or none is there.
tl::unexpected<Error> NoSnapshot(const std::string& model, const HubName& name) {
  const fs::path base = RepoFolderIn(name);
  const std::string revision = name.revision.empty() ? "main" : name.revision;
  if (const std::vector<std::string> names = Snapshots(base); !names.empty())
    return NoSnapshotIsMeant(model, base / "refs" / revision, CommitOf(base, revision), names);
  std::error_code ignored;
  return NotFound(fmt::format(
      "model '{}': neither a folder (in {}: {}) nor a snapshot in the Hugging Face cache (looked "
      "for {}); if a folder is meant, give its path from there or from /; if a repository "
      "of a model with MLA, download it with `latte pull {}`{}",
      model, fs::current_path(ignored).string(), WhyMissing(model), (base / "snapshots").string(),
      model, DidYouMean(model, KnownModels(model))));
}

// For a name that is neither a folder nor a repository: the model that may be meant, or where to
// look.
std::string NextStep(const std::string& model) {
  if (model.find_first_of(" \n") != std::string::npos) return "; a prompt is given with -p";
  const std::vector<std::string> known = KnownModels(model);
  for (const std::string& name : known)
    if (IsRepoId(name.substr(0, name.find(':'))) && name.ends_with("/" + model))
      return fmt::format("; did you mean {}?", name);
  const std::string meant = DidYouMean(model, known);
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
  const Result<HubName> name = ParseHubName(model);
  if (name) {
    const std::string snapshot = SnapshotOf(*name);
    if (snapshot.empty()) return NoSnapshot(model, *name);
    return FromSnapshot(model, *name, snapshot);
  }
  // "org/name:" is no path, but perhaps a quant that is misspelt.
  if (IsRepoId(model.substr(0, model.find(':')))) return tl::unexpected(name.error());
  return NotFound(fmt::format(
      "model '{}': expected a Hugging Face folder, a .gguf file, a repository id (org/name, "
      "org/name:QUANT or org/name@REVISION) in the local cache, "
      "tiny or tiny-sparse, found {}{}",
      model, WhyMissing(model), NextStep(model)));
}

std::vector<std::string> BundledModels() { return {std::begin(kBundled), std::end(kBundled)}; }

std::vector<CachedModel> CachedModels() {
  std::vector<CachedModel> out;
  for (const std::string& repo : CachedRepos()) {
    const std::string snapshot = SnapshotOf({.repo = repo});
    const std::vector<GgufSet> models =
        snapshot.empty() ? std::vector<GgufSet>() : GgufModelsIn(snapshot, true);
    if (models.empty() || HasSafetensors(snapshot)) out.push_back({repo, snapshot, 0});
    for (const GgufSet& model : models)
      out.push_back({fmt::format("{}:{}", repo, model.name),
                     model.missing.empty() ? PathOfFirst(snapshot, model) : "", model.bytes});
  }
  return out;
}

std::vector<std::string> KnownModels(const std::string& like) {
  std::vector<std::string> out = BundledModels();
  for (CachedModel& model : CachedModels()) out.push_back(std::move(model.name));
  const fs::path folder = fs::path(like).parent_path();
  std::error_code error;
  size_t left = 1000;
  for (fs::directory_iterator it(folder.empty() ? "." : folder, error), end;
       !error && it != end && left > 0; it.increment(error), --left)
    out.push_back((folder / it->path().filename()).string());
  return out;
}

}  // namespace latte

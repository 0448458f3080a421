#include "src/checkpoint/model_path.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

std::string Env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The file that contains this code: liblatte or the program; empty if unknown.
fs::path LoadedFrom() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&ResolveModelPath), &info) == 0) return {};
  std::error_code ignored;
  return fs::canonical(info.dli_fname, ignored);
}

// Whether `model` comes with Latte.
bool IsBundled(std::string_view model) { return model == "tiny" || model == "tiny-sparse"; }

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

// The home of `user`, or of the current user if it is empty; empty if unknown.
std::string HomeOf(const std::string& user) {
  if (user.empty())
    if (std::string home = Env("HOME"); !home.empty()) return home;
  std::vector<char> buffer(16384);
  passwd entry = {};
  passwd* found = nullptr;
  if (user.empty())
    getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found);
  else
    getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr || found->pw_dir == nullptr ? "" : found->pw_dir;
}

// Like os.path.expanduser: "~" and "~user" at the beginning.
std::string WithHome(const std::string& path) {
  if (!path.starts_with('~')) return path;
  const size_t end = std::min(path.find('/'), path.size());
  const std::string home = HomeOf(path.substr(1, end - 1));
  return home.empty() ? path : home + path.substr(end);
}

// Like os.path.expandvars: $NAME and ${NAME}; an unset variable stays unchanged.
std::string WithVariables(const std::string& path) {
  const auto in_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  std::string out;
  for (size_t at = 0; at < path.size();) {
    size_t end = at + 1;
    std::string name;
    if (path[at] == '$' && end < path.size() && path[end] == '{') {
      const size_t brace = path.find('}', end);
      if (brace != std::string::npos) name = path.substr(end + 1, brace - end - 1);
      if (brace != std::string::npos) end = brace + 1;
    } else if (path[at] == '$') {
      while (end < path.size() && in_name(path[end])) ++end;
      name = path.substr(at + 1, end - at - 1);
    }
    const char* value = name.empty() ? nullptr : std::getenv(name.c_str());
    out += value == nullptr ? path.substr(at, end - at) : value;
    at = end;
  }
  return out;
}

// The search order of huggingface_hub (its constants.py).
fs::path HubCache() {
  const auto expanded = [](const std::string& path) {
    return fs::path(WithVariables(WithHome(path)));
  };
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string hub = Env(name); !hub.empty()) return expanded(hub);
  if (const std::string home = Env("HF_HOME"); !home.empty()) return expanded(home) / "hub";
  if (const std::string cache = Env("XDG_CACHE_HOME"); !cache.empty())
    return expanded(cache) / "huggingface/hub";
  return fs::path(HomeOf("")) / ".cache/huggingface/hub";
}

// Exactly "org/name", each part a plain name.
bool IsRepoId(const std::string& model) {
  const size_t slash = model.find('/');
  const auto plain = [](std::string_view part) {
    return !part.empty() && part.front() != '.' &&
           part.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
               "0123456789-_.") == std::string_view::npos;
  };
  return slash != std::string::npos && plain(std::string_view(model).substr(0, slash)) &&
         plain(std::string_view(model).substr(slash + 1));
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

// The commit in refs/main; empty if there is none.
std::string MainCommit(const fs::path& base) {
  Result<std::string> commit = ReadFile((base / "refs/main").string(), 4096);
  if (!commit) return "";
  while (!commit->empty() && std::isspace(static_cast<unsigned char>(commit->back())) != 0)
    commit->pop_back();
  return *commit;
}

// The error for a cached `repo` whose snapshots are ambiguous.
tl::unexpected<Error> NoSnapshotIsMeant(const std::string& repo, const fs::path& base,
                                        const std::string& commit,
                                        const std::vector<std::string>& names) {
  constexpr size_t kListed = 8;
  const std::span<const std::string> listed(names.data(), std::min(names.size(), kListed));
  return NotFound(fmt::format(
      "model '{}': {} {}; found {} in {}: {}{}; give the folder of one of them, or download the "
      "newest with `hf download {}`",
      repo, (base / "refs/main").string(),
      commit.empty() ? "is missing and several snapshots are there"
                     : fmt::format("names '{}', which is not there", Printable(commit, 60)),
      names.size() == 1 ? "one snapshot" : fmt::format("{} snapshots", names.size()),
      (base / "snapshots").string(), fmt::join(listed, ", "), names.size() > kListed ? ", …" : "",
      repo));
}

// The snapshot of `repo` in the hub cache: models--org--name/snapshots/<commit> with the commit of
// refs/main. A cache that was filled by commit or copied may have no refs.
Result<std::string> FromHubCache(const std::string& repo, const std::string& why_no_folder) {
  std::string folder = "models--" + repo;
  folder.replace(folder.find('/'), 1, "--");
  const fs::path base = HubCache() / folder;
  const std::string commit = MainCommit(base);
  const fs::path snapshot = base / "snapshots" / commit;
  if (!commit.empty() && commit.find('/') == std::string::npos && IsDirectory(snapshot.string()))
    return snapshot.string();
  const std::vector<std::string> names = Snapshots(base);
  if (commit.empty() && names.size() == 1) return (base / "snapshots" / names.front()).string();
  if (!names.empty()) return NoSnapshotIsMeant(repo, base, commit, names);
  std::error_code ignored;
  return NotFound(fmt::format(
      "model '{}': neither a folder (in {}: {}) nor a snapshot in the Hugging Face cache (looked "
      "for {}); if a folder is meant, give its path from there or from /; if a repository, "
      "download "
      "it with `hf download {}`",
      repo, fs::current_path(ignored).string(), why_no_folder, (base / "snapshots").string(),
      repo));
}

// The reason why `path` cannot be read.
std::string WhyMissing(const std::string& path) {
  std::error_code error;
  const bool there = fs::exists(path, error);
  return there ? "neither a folder nor a regular file" : error ? error.message() : "no such folder";
}

}  // namespace

Result<std::string> ResolveModelPath(const std::string& model) {
  if (IsDirectory(model) || IsRegularFile(model)) return model;
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
  if (IsRepoId(model)) return FromHubCache(model, WhyMissing(model));
  return NotFound(fmt::format(
      "model '{}': expected a Hugging Face folder, a repository id (org/name) in the local cache, "
      "tiny or tiny-sparse, found {}",
      model, WhyMissing(model)));
}

}  // namespace latte

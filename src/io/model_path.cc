#include "src/io/model_path.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/file.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

std::string Env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The file that this code was loaded from: liblatte, or the program itself; empty if unknown.
fs::path LoadedFrom() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&ResolveModelPath), &info) == 0) return {};
  std::error_code ignored;
  return fs::canonical(info.dli_fname, ignored);
}

// Folders that may hold the model that comes with Latte.
std::vector<fs::path> TinyPlaces() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<fs::path> places = {program.parent_path() / "share/latte/models/tiny"};
  // build/<preset>/latte and build/<preset>/<folder>/<test> lie two to four levels below the
  // repository.
  fs::path up = program;
  for (int level = 0; level < 5 && up.has_relative_path(); ++level, up = up.parent_path())
    places.push_back(up / "models/tiny");
  // Of an installed library: <prefix>/lib or <prefix>/lib/<machine>.
  up = LoadedFrom().parent_path();
  for (int level = 0; level < 2 && up.has_relative_path(); ++level) {
    up = up.parent_path();
    places.push_back(up / "share/latte/models/tiny");
  }
  return places;
}

fs::path HubCache() {
  if (const std::string hub = Env("HF_HUB_CACHE"); !hub.empty()) return hub;
  if (const std::string home = Env("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  return fs::path(Env("HOME")) / ".cache/huggingface/hub";
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

// The snapshot of `repo` in the hub cache: models--org--name/snapshots/<commit>, the commit named
// by refs/main.
Result<std::string> FromHubCache(const std::string& repo) {
  std::string folder = "models--" + repo;
  folder.replace(folder.find('/'), 1, "--");
  const fs::path base = HubCache() / folder;
  Result<std::string> commit = ReadFile((base / "refs/main").string(), 4096);
  if (commit) {
    while (!commit->empty() && std::isspace(static_cast<unsigned char>(commit->back())) != 0)
      commit->pop_back();
    const fs::path snapshot = base / "snapshots" / *commit;
    if (commit->find('/') == std::string::npos && IsDirectory(snapshot.string()))
      return snapshot.string();
  }
  return NotFound(
      fmt::format("model '{}': neither a folder nor a complete snapshot in the Hugging Face cache "
                  "(looked for {}); download it with `huggingface-cli download {}`",
                  repo, (base / "snapshots").string(), repo));
}

}  // namespace

Result<std::string> ResolveModelPath(const std::string& model) {
  if (IsDirectory(model) || IsRegularFile(model)) return model;
  if (model == "tiny") {
    std::vector<std::string> tried;
    for (const fs::path& place : TinyPlaces()) {
      if (IsRegularFile((place / "config.json").string())) return place.string();
      tried.push_back(place.string());
    }
    return NotFound(
        fmt::format("the model 'tiny' was not found beside the program or liblatte; looked for {}",
                    fmt::join(tried, ", ")));
  }
  if (IsRepoId(model)) return FromHubCache(model);
  return NotFound(fmt::format(
      "model '{}': expected a Hugging Face folder, a repository id (org/name) in the local cache, "
      "or tiny",
      model));
}

}  // namespace latte

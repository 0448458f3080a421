#include "src/checkpoint/hub_cache.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include "src/base/strings.h"
#include "src/base/variables.h"

namespace latte {
namespace {

constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
constexpr size_t kMostQuantBytes = 255;  // of a file's name

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
  const auto in_name = [](char c) { return IsAlphanumeric(c) || c == '_'; };
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

bool IsRepoPart(std::string_view part) {
  return !part.empty() && part.front() != '.' &&
         part.find_first_not_of(kNameCharacters) == std::string_view::npos;
}

}  // namespace

std::string ExpandedPath(const std::string& path) { return WithVariables(WithHome(path)); }

std::string HubHomeFolder() {
  if (const std::string home = Env("HF_HOME"); !home.empty()) return ExpandedPath(home);
  if (const std::string cache = Env("XDG_CACHE_HOME"); !cache.empty())
    return ExpandedPath(cache) + "/huggingface";
  return HomeOf("") + "/.cache/huggingface";
}

std::string HubCacheFolder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string hub = Env(name); !hub.empty()) return ExpandedPath(hub);
  return HubHomeFolder() + "/hub";
}

bool IsRepoId(std::string_view text) {
  const size_t slash = text.find('/');
  return slash != std::string_view::npos && IsRepoPart(text.substr(0, slash)) &&
         IsRepoPart(text.substr(slash + 1));
}

bool IsRevision(std::string_view text) {
  if (text.empty() || text.size() > 255) return false;
  return std::ranges::all_of(Pieces(text, '/'), IsRepoPart);
}

Result<HubName> ParseHubName(std::string_view text) {
  constexpr std::string_view kMarks = "@:";
  HubName out;
  size_t end = std::min(text.find_first_of(kMarks), text.size());
  out.repo = text.substr(0, end);
  bool good = IsRepoId(out.repo);
  while (good && end < text.size()) {
    const bool is_quant = text[end] == ':';
    const size_t next = std::min(text.find_first_of(kMarks, end + 1), text.size());
    const std::string_view word = text.substr(end + 1, next - end - 1);
    if (is_quant && (!IsRepoPart(word) || word.size() > kMostQuantBytes))
      return InvalidArgument(
          fmt::format("model '{}': expected a quant such as Q4_K_M after ':', of letters, digits, "
                      "'-', '_' and '.', found '{}'",
                      text, word));
    std::string& part = is_quant ? out.quant : out.revision;
    good = part.empty() && (is_quant || IsRevision(word));
    part = word;
    end = next;
  }
  if (good) return out;
  return InvalidArgument(
      fmt::format("model '{}': expected ORG/NAME, ORG/NAME:QUANT or ORG/NAME@REVISION, as in "
                  "deepseek-ai/DeepSeek-V2-Lite",
                  text));
}

std::vector<std::string> CachedRepos() {
  constexpr std::string_view kPrefix = "models--";
  constexpr size_t kMost = 1000;
  std::vector<std::string> out;
  std::error_code error;
  for (std::filesystem::directory_iterator it(HubCacheFolder(), error), end; !error && it != end;
       it.increment(error)) {
    std::string name = it->path().filename().string();
    if (!name.starts_with(kPrefix) || out.size() == kMost) continue;
    name.erase(0, kPrefix.size());
    const size_t between = name.find("--");
    if (between == std::string::npos) continue;
    name.replace(between, 2, 1, '/');
    if (IsRepoId(name)) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string RepoFolderName(std::string_view repo) {
  std::string out = "models--" + std::string(repo);
  return out.replace(out.find('/'), 1, "--");
}

}  // namespace latte

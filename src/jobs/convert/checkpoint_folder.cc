#include "src/jobs/convert/checkpoint_folder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/strings.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxComparedBytes = 64 << 20;  // of a file that is compared with the source

constexpr auto kFiles = std::to_array<std::string_view>(
    {"added_tokens.json", "chat_template.jinja", "chat_template.json", "config.json",
     "generation_config.json", "merges.txt", "model.safetensors", "model.safetensors.index.json",
     "special_tokens_map.json", "tiktoken.model", "tokenizer.json", "tokenizer.model",
     "tokenizer_config.json", "vocab.json"});

// "model-00001-of-00002.safetensors".
bool IsShard(std::string_view name) {
  constexpr std::string_view kBegin = "model-";
  constexpr std::string_view kMiddle = "-of-";
  constexpr std::string_view kEnd = ".safetensors";
  if (name.size() < kBegin.size() + kEnd.size() || !name.starts_with(kBegin) ||
      !name.ends_with(kEnd))
    return false;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(kEnd.size());
  const size_t middle = name.find(kMiddle);
  return middle != std::string_view::npos && IsDigits(name.substr(0, middle)) &&
         IsDigits(name.substr(middle + kMiddle.size()));
}

bool IsSame(const std::string& a, const struct stat& b) {
  struct stat st = {};
  return stat(a.c_str(), &st) == 0 && st.st_dev == b.st_dev && st.st_ino == b.st_ino;
}

// Whether `path`, which contains no links, is `folder` or lies inside it.
bool LiesIn(const fs::path& path, const std::string& folder) {
  struct stat st = {};
  if (stat(folder.c_str(), &st) != 0) return false;
  for (fs::path at = path;; at = at.parent_path()) {
    if (IsSame(at.string(), st)) return true;
    if (at == at.parent_path()) return false;
  }
}

// Whether a file system is mounted there: such a folder cannot be renamed.
bool IsMountPoint(const std::string& path) {
#ifdef STATX_ATTR_MOUNT_ROOT
  struct statx st = {};
  if (statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, &st) == 0 &&
      (st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0)
    return (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
#endif
  struct stat here = {};
  struct stat above = {};
  return stat(path.c_str(), &here) == 0 && stat((path + "/..").c_str(), &above) == 0 &&
         here.st_dev != above.st_dev;
}

// The place of `dir` without links; it need not exist.
Result<std::string> Located(const std::string& dir) {
  if (dir.empty()) return InvalidArgument("expected the name of a folder to write, found none");
  std::string path = dir;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::error_code error;
  if (Exists(path)) {
    const fs::path real = fs::canonical(path, error);
    if (error)
      return InvalidArgument(
          fmt::format("{}: expected a folder to write, found a link that leads nowhere", dir));
    if (IsDirectory(path)) return real.string();
    return InvalidArgument(fmt::format("{}: expected a folder to write, found a file", dir));
  }
  const fs::path name = fs::path(path).filename();
  fs::path parent = fs::path(path).parent_path();
  if (parent.empty()) parent = ".";
  const fs::path real = fs::canonical(parent, error);
  if (!error && !fs::is_directory(real, error) && !error)
    error = std::make_error_code(std::errc::not_a_directory);
  if (error)
    return NotFound(
        fmt::format("{}: expected a folder to write into: {}", parent.string(), error.message()));
  return (real / name).string();
}

// The working directory of the program and mount points cannot be replaced.
Status CheckMovable(const std::string& dir, const std::string& path) {
  std::error_code error;
  const fs::path here = fs::current_path(error);
  if (path == "/" || (!error && LiesIn(here, path)))
    return InvalidArgument(
        fmt::format("{}: expected a folder other than the current one and those above it, as it "
                    "is replaced as a whole; name another",
                    dir));
  if (IsMountPoint(path))
    return InvalidArgument(
        fmt::format("{}: expected a folder that can be replaced as a whole, found one that a file "
                    "system is mounted on; name a folder in it",
                    dir));
  return {};
}

// Refuses the source itself, folders around it and inside it, and folders whose files it links to.
Status CheckNotSource(const std::string& dir, const std::string& path, const std::string& source) {
  std::error_code error;
  const fs::path real = fs::canonical(source, error);
  if (error) return {};  // an error is reported when the source is read
  const bool folder = IsDirectory(real.string());
  const std::string from = folder ? real.string() : real.parent_path().string();
  const auto refusal = [&](std::string_view found) {
    return InvalidArgument(
        fmt::format("{}: expected a folder apart from the source {}, found {}; name another", dir,
                    source, found));
  };
  if (LiesIn(path, from) || LiesIn(fs::path(path).parent_path(), from))
    return refusal(IsDirectory(path) && LiesIn(from, path) ? "the source itself" : "one in it");
  if (!IsDirectory(path)) return {};
  if (LiesIn(from, path)) return refusal("one that holds it");
  for (fs::directory_iterator it(from, error), end; !error && it != end; it.increment(error)) {
    std::error_code dangling;
    const fs::path file = fs::canonical(it->path(), dangling);
    if (!dangling && LiesIn(file.parent_path(), path))
      return refusal(
          fmt::format("the one that its {} is a link into", it->path().filename().string()));
  }
  return {};
}

// Whether `source` contains the same file, so that replacing it loses nothing.
bool IsCopy(const std::string& path, const std::string& source, const std::string& name) {
  if (source.empty() || !IsRegularFile(path)) return false;
  const Result<std::string> there = ReadFile(path, kMaxComparedBytes);
  if (!there) return false;
  const Result<std::string> ours = ReadFile(source + "/" + name, kMaxComparedBytes);
  return ours && *ours == *there && name.find('\n') == std::string::npos && !name.starts_with('.');
}

// The files in `path`, all of which must belong to a checkpoint.
Result<std::vector<std::string>> OwnFiles(const std::string& dir, const std::string& path,
                                          const std::string& source) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool file = !fs::is_directory(it->symlink_status(error)) && IsRegularFile(it->path());
    if (!(file && IsCheckpointFile(name)) && !IsCopy(it->path(), source, name))
      return InvalidArgument(fmt::format(
          "{}: --force replaces files of a checkpoint only, found '{}' there too, which "
          "would be lost; move it away, or name another folder",
          dir, name));
    files.push_back(name);
  }
  if (error)
    return Fail(Code::kUnavailable, fmt::format("{}: cannot be read: {}", dir, error.message()));
  std::ranges::sort(files);
  return files;
}

}  // namespace

bool IsCheckpointFile(std::string_view name) {
  return std::ranges::find(kFiles, name) != kFiles.end() || IsShard(name);
}

Result<CheckpointFolder> FindCheckpointFolder(const std::string& dir, const std::string& source,
                                              bool force) {
  CheckpointFolder out;
  LATTE_ASSIGN_OR_RETURN(out.path, Located(dir));
  if (!source.empty()) LATTE_RETURN_IF_ERROR(CheckNotSource(dir, out.path, source));
  if (!Exists(out.path)) return out;
  LATTE_RETURN_IF_ERROR(CheckMovable(dir, out.path));
  std::error_code error;
  const bool empty = fs::is_empty(out.path, error);
  if (error)
    return Fail(Code::kUnavailable, fmt::format("{}: cannot be read: {}", dir, error.message()));
  if (empty) return out;
  if (!force)
    return InvalidArgument(
        fmt::format("{}: expected no folder or an empty one, found files in it; name another, or "
                    "replace the checkpoint in it with --force",
                    dir));
  if (!IsRegularFile(out.path + "/config.json"))
    return InvalidArgument(fmt::format(
        "{}: --force replaces checkpoint folders only, and this one has no config.json", dir));
  LATTE_ASSIGN_OR_RETURN(out.files, OwnFiles(dir, out.path, source));
  return out;
}

}  // namespace latte

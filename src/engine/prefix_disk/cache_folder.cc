#include "src/engine/prefix_disk/cache_folder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/files/output_file.h"
#include "src/cache/prefix_file.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNameDigits = 32;

bool IsName(std::string_view text) {
  return text.size() == kNameDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// What WriteFile calls a file that it has not finished.
bool IsTemporary(std::string_view text) {
  return text.size() > kNameDigits && IsName(text.substr(0, kNameDigits)) &&
         text[kNameDigits] == '.' && text.ends_with(".tmp");
}

// `forbidden`: permissions of others that are refused.
Status OpenFolder(const std::string& path, mode_t forbidden) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return Fail(Code::kUnavailable,
                fmt::format("{}: the cache folder cannot be made: {}", path, std::strerror(errno)));
  struct stat st = {};
  // In a folder such as /tmp others may have put a link there that leads into another folder of
  // this user.
  if (lstat(path.c_str(), &st) == 0 && S_ISLNK(st.st_mode) && st.st_uid != geteuid() &&
      st.st_uid != 0)
    return InvalidArgument(
        fmt::format("{}: expected a folder for the cache, found a link of user {}; give another "
                    "--cache-dir",
                    path, st.st_uid));
  if (stat(path.c_str(), &st) != 0)
    return Fail(Code::kUnavailable,
                fmt::format("{}: the cache folder cannot be read: {}", path, std::strerror(errno)));
  if (!S_ISDIR(st.st_mode))
    return InvalidArgument(fmt::format(
        "{}: expected a folder for the cache, found a file; give another --cache-dir", path));
  if (st.st_uid != geteuid())
    return InvalidArgument(
        fmt::format("{}: the cache folder belongs to user {}, expected {}; give a folder of your "
                    "own as --cache-dir",
                    path, st.st_uid, geteuid()));
  if ((st.st_mode & forbidden) != 0)
    return InvalidArgument(
        fmt::format("{}: the cache folder is open to other users (mode {:o}), expected 700; close "
                    "it with chmod 700, after a look at what is in it",
                    path, st.st_mode & 07777));
  return {};
}

struct Found {
  CachedFile file;
  fs::file_time_type used;
};

void ScanModel(const fs::path& folder, std::vector<Found>& found) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code gone;  // by another process; then it is not there
    if (IsTemporary(name)) RemoveAbandoned(it->path().string());
    if (!IsName(name) || !it->is_regular_file(gone) || gone) continue;
    const auto bytes = it->file_size(gone);
    if (gone) continue;
    const auto used = it->last_write_time(gone);
    if (gone) continue;
    found.push_back({{folder.filename().string() + "/" + name, static_cast<int64_t>(bytes)}, used});
  }
}

}  // namespace

Status OpenCacheFolder(const std::string& dir, const std::string& model) {
  std::error_code error;  // whatever it is, making the folder itself will fail
  fs::create_directories(fs::path(dir).parent_path(), error);
  LATTE_RETURN_IF_ERROR(OpenFolder(dir, S_IWGRP | S_IWOTH));
  return OpenFolder(dir + "/" + model, S_IRWXG | S_IRWXO);
}

void RemoveCached(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  std::array<char, kPrefixMagic.size()> head = {};
  const ssize_t n = pread(fd, head.data(), head.size(), 0);
  close(fd);
  if (std::string_view(head.data(), static_cast<size_t>(std::max<ssize_t>(n, 0))) == kPrefixMagic)
    unlink(path.c_str());
}

std::vector<CachedFile> ScanCacheFolder(const std::string& dir) {
  std::vector<Found> found;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (IsName(it->path().filename().string()) && it->is_directory(gone) && !gone)
      ScanModel(it->path(), found);
  }
  std::ranges::sort(found, {}, &Found::used);
  std::vector<CachedFile> files;
  files.reserve(found.size());
  for (Found& f : found) files.push_back(std::move(f.file));
  return files;
}

}  // namespace latte

#include "src/hub/files/disk.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/base/file.h"

namespace latte {

namespace fs = std::filesystem;

namespace {

constexpr mode_t kFolderMode = 0775;  // without what the umask takes
constexpr mode_t kLockMode = 0664;

// 0, or the reason why the folder cannot be made. One that is there is no error.
int MakeOneFolder(const std::string& path) {
  return mkdir(path.c_str(), kFolderMode) == 0 || errno == EEXIST ? 0 : errno;
}

tl::unexpected<Error> InTheWay(const std::string& path, const char* expected, mode_t mode) {
  const char* found = S_ISLNK(mode) ? "a link" : S_ISDIR(mode) ? "a folder" : "something else";
  return InvalidArgument(
      fmt::format("{}: expected {} of the cache, found {}; look where it comes from, and remove it",
                  path, expected, found));
}

}  // namespace

tl::unexpected<Error> DiskError(const std::string& path, int err) {
  const bool full = err == ENOSPC || err == EDQUOT || err == EFBIG;
  return Fail(full ? Code::kExhausted : Code::kUnavailable,
              fmt::format("{}: {}{}", path, std::strerror(err),
                          full ? "; free some space, or set HF_HUB_CACHE to a folder on a larger "
                                 "disk"
                               : ""));
}

Status SyncFolderOf(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return DiskError(folder, errno);
  const int result = fsync(fd);
  const int err = errno;
  close(fd);
  if (result != 0 && err != EINVAL) return DiskError(folder, err);  // EINVAL: cannot be forced
  return {};
}

Status CreateFolders(const std::string& folder) {
  if (IsDirectory(folder)) return {};
  const std::string around = fs::path(folder).parent_path().string();
  if (!around.empty() && around != folder) LATTE_RETURN_IF_ERROR(CreateFolders(around));
  if (const int err = MakeOneFolder(folder); err != 0) return DiskError(folder, err);
  return IsDirectory(folder) ? Status() : DiskError(folder, ENOTDIR);
}

Status CreateFoldersInside(const std::string& base, const std::string& relative) {
  fs::path folder = base;
  for (const fs::path& part : fs::path(relative)) {
    if (part.empty()) continue;  // behind a last '/'
    folder /= part;
    if (const int err = MakeOneFolder(folder.string()); err != 0)
      return DiskError(folder.string(), err);
    struct stat info = {};
    if (lstat(folder.c_str(), &info) != 0) return DiskError(folder.string(), errno);
    if (!S_ISDIR(info.st_mode)) return InTheWay(folder.string(), "a folder", info.st_mode);
  }
  return {};
}

Status RemoveFile(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) return errno == ENOENT ? Status() : DiskError(path, errno);
  if (S_ISDIR(info.st_mode)) return InTheWay(path, "a file", info.st_mode);
  return unlink(path.c_str()) == 0 || errno == ENOENT ? Status() : DiskError(path, errno);
}

Status CheckRoom(const std::string& folder, int64_t bytes) {
  fs::path there = fs::absolute(folder);
  while (!IsDirectory(there.string()) && there.has_relative_path()) there = there.parent_path();
  struct statvfs info = {};
  if (statvfs(there.c_str(), &info) != 0) return {};
  const auto free = static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
  if (free >= bytes) return {};
  return Exhausted(fmt::format(
      "{}: expected {:.2f} GB of free space for the download, found {:.2f} GB; free some, or set "
      "HF_HUB_CACHE to a folder on a larger disk",
      there.string(), static_cast<double>(bytes) / 1e9, static_cast<double>(free) / 1e9));
}

Result<FileLock> FileLock::Take(const std::string& path, const std::function<bool()>& wait) {
  const int fd =
      open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kLockMode);
  struct stat info = {};
  if (fd < 0) {
    const int err = errno;
    const bool there = lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
    return there ? InTheWay(path, "a lock file", info.st_mode) : DiskError(path, err);
  }
  FileLock out(fd);
  if (fstat(fd, &info) != 0) return DiskError(path, errno);
  if (!S_ISREG(info.st_mode)) return InTheWay(path, "a lock file", info.st_mode);
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) break;  // the file system has no locks
    if (!wait()) return Fail(Code::kCancelled, "stopped while another process downloads the model");
  }
  return out;
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace latte

#include "src/hub/files/disk.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/base/file.h"

namespace latte {

namespace fs = std::filesystem;

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
  std::error_code error;
  fs::create_directories(folder, error);
  if (!IsDirectory(folder)) return DiskError(folder, error ? error.value() : ENOTDIR);
  return {};
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
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return DiskError(path, errno);
  FileLock out(fd);
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

// Free space on disks, locks between processes, and the reasons of failed writes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "latte/status.h"

namespace latte {

// "PATH: No space left on device; …": kExhausted for a full disk or quota, otherwise kUnavailable.
tl::unexpected<Error> DiskError(const std::string& path, int err);

// Makes the names in the folder of `path` durable. Errors: of DiskError.
[[nodiscard]] Status SyncFolderOf(const std::string& path);

// Creates `folder` and those around it, without write permission for everybody. Errors: of
// DiskError.
[[nodiscard]] Status CreateFolders(const std::string& folder);

// Creates the folders `relative` below `base`, and follows no link: another user who may write into
// a cache could plant one that leads elsewhere. Errors: kInvalidArgument for a link or a file in
// the place of a folder; of DiskError.
[[nodiscard]] Status CreateFoldersInside(const std::string& base, const std::string& relative);

// Removes whatever has the name `path`, but a folder. Errors: kInvalidArgument for a folder; of
// DiskError.
[[nodiscard]] Status RemoveFile(const std::string& path);

// Errors: kExhausted if the disk of `folder`, which need not exist, has less than `bytes` free.
[[nodiscard]] Status CheckRoom(const std::string& folder, int64_t bytes);

// A lock that ends with the process. Movable.
class FileLock {
 public:
  // Takes the lock of the file `path`, which stays. While another process has it, calls `wait` and
  // tries again; gives up when that returns false. Where the disk has no locks, none is taken.
  // Follows no link. Errors: kCancelled; kInvalidArgument if `path` is no regular file; of
  // DiskError.
  [[nodiscard]] static Result<FileLock> Take(const std::string& path,
                                             const std::function<bool()>& wait);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace latte

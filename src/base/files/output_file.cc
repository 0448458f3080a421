#include "src/base/files/output_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/strings.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".latte-";  // between file name and thread id
constexpr std::string_view kEnd = ".tmp";
constexpr size_t kHead = size_t{1} << 20;  // bytes that FileKind::holds gets

tl::unexpected<Error> WriteError(const std::string& path, int err) {
  return Fail(Code::kUnavailable,
              fmt::format("{}: cannot be written: {}", path, std::strerror(err)));
}

// The target of the links at `path`; empty for a dangling link.
std::string Followed(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (real) return real.get();
  return Exists(path) ? "" : path;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Devices, pipes, and names of descriptors: another process has such a file open, and a new file
// under its name would not reach it.
bool InPlace(const std::string& path) {
  struct stat st = {};
  if (stat(path.c_str(), &st) != 0 || S_ISDIR(st.st_mode)) return false;
  return !S_ISREG(st.st_mode) || path.starts_with("/dev/fd/") || path.starts_with("/dev/std") ||
         path.starts_with("/proc/");
}

// Up to kHead bytes from the beginning of a file.
Result<std::string> HeadOf(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto failure = [&] {
    return Fail(Code::kUnavailable, fmt::format("{}: it stands there and cannot be read: {}", path,
                                                std::strerror(errno)));
  };
  if (fd < 0) return failure();
  std::string head(kHead, '\0');
  const ssize_t n = pread(fd, head.data(), head.size(), 0);
  close(fd);
  if (n < 0) return failure();
  head.resize(static_cast<size_t>(n));
  return head;
}

// For a name that exists.
Status CheckThere(const std::string& path, const std::string& target, const FileKind& kind) {
  if (target.empty())
    return InvalidArgument(path + ": expected a file to write, found a link that leads nowhere");
  if (IsDirectory(target))
    return InvalidArgument(path + ": expected a file to write, found a folder");
  if (access(target.c_str(), W_OK) != 0) return WriteError(path, errno);
  LATTE_ASSIGN_OR_RETURN(const std::string head, HeadOf(target));
  if (head.empty() || kind.holds(head)) return {};
  return InvalidArgument(fmt::format(
      "{}: expected no file there, or {}, found another file; give another name, or remove it",
      path, kind.what));
}

bool IsLeftover(std::string_view entry, std::string_view name) {
  if (!entry.starts_with(name) || !entry.ends_with(kEnd)) return false;
  entry.remove_prefix(name.size());
  if (!entry.starts_with(kMark) || entry.size() <= kMark.size() + kEnd.size()) return false;
  entry.remove_prefix(kMark.size());
  entry.remove_suffix(kEnd.size());
  return IsDigits(entry);
}

// Removes leftovers of earlier runs for `target`.
void Sweep(const std::string& target) {
  const std::string folder = FolderOf(target);
  const std::string name = fs::path(target).filename().string();
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (IsLeftover(it->path().filename().string(), name)) RemoveAbandoned(it->path().string());
}

}  // namespace

Status MayReplace(const std::string& path, const FileKind& kind) {
  if (path.empty()) return InvalidArgument("expected the name of a file to write, found none");
  if (InPlace(path)) return {};
  const std::string target = Followed(path);
  if (Exists(path)) LATTE_RETURN_IF_ERROR(CheckThere(path, target, kind));
  const std::string folder = FolderOf(target);
  if (!IsDirectory(folder))
    return NotFound(fmt::format("{}: expected a folder to write into: {}: {}", path, folder,
                                std::strerror(Exists(folder) ? ENOTDIR : ENOENT)));
  if (path.back() == '/')
    return InvalidArgument(path + ": expected a file to write, found the name of a folder");
  if (access(folder.c_str(), W_OK | X_OK) != 0) return WriteError(path, errno);
  return {};
}

void RemoveAbandoned(const std::string& path) {
  // Opened for writing: network file systems lock nothing else.
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  struct stat st = {};
  const bool ours = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
  // A file system without locks cannot tell; then the run that is still writing loses its temporary
  // file, reports it, and leaves the target unchanged.
  if (ours && (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)) unlink(path.c_str());
  close(fd);
}

Result<OutputFile> OutputFile::Create(const std::string& path, const FileKind& kind) {
  LATTE_RETURN_IF_ERROR(MayReplace(path, kind));
  OutputFile out;
  out.path_ = path;
  if (InPlace(path)) {
    out.fd_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (out.fd_ < 0) return out.Failure(errno);
    return out;
  }
  out.target_ = Followed(path);
  Sweep(out.target_);
  struct stat st = {};
  const bool there = stat(out.target_.c_str(), &st) == 0;
  LATTE_RETURN_IF_ERROR(out.OpenTemp(0666));
  if (there) (void)fchmod(out.fd_, st.st_mode & 0777);
  return out;
}

Result<OutputFile> OutputFile::CreateOwn(const std::string& path) {
  OutputFile out;
  out.path_ = path;
  out.target_ = path;
  out.forced_ = false;
  LATTE_RETURN_IF_ERROR(out.OpenTemp(0666));
  return out;
}

Status OutputFile::OpenTemp(unsigned mode) {
  // Between the two calls another run may take the file for a leftover, lock and remove it.
  constexpr int kTries = 10;
  // Two threads may write one target at once: engines that share a folder of prefixes.
  const std::string temp = fmt::format("{}{}{}{}", target_, kMark, gettid(), kEnd);
  for (int i = 0; i < kTries; ++i) {
    const int fd = open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0 && errno == EEXIST && i == 0) {
      RemoveAbandoned(temp);  // of an ended thread with the same id
      continue;
    }
    if (fd < 0) return errno == EEXIST ? WriteError(temp, errno) : Failure(errno);
    struct stat st = {};
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (locked && fstat(fd, &st) == 0 && st.st_nlink == 1) {
      fd_ = fd;
      temp_ = temp;
      return {};
    }
    close(fd);
  }
  return Failure(EBUSY);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temp_(std::exchange(other.temp_, {})),
      forced_(other.forced_),
      fd_(std::exchange(other.fd_, -1)) {}

OutputFile::~OutputFile() {
  if (!temp_.empty()) unlink(temp_.c_str());
  if (fd_ >= 0) close(fd_);
}

tl::unexpected<Error> OutputFile::Failure(int err) const { return WriteError(path_, err); }

Status OutputFile::Write(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failure(errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

Status OutputFile::Commit() {
  const bool replaces = !temp_.empty();
  // Before the rename: after a power failure the name must not lead to a file without its bytes.
  if (replaces && forced_ && fsync(fd_) != 0 && errno != EINVAL) return Failure(errno);
  if (replaces && rename(temp_.c_str(), target_.c_str()) != 0) return Failure(errno);
  temp_.clear();
  if (close(std::exchange(fd_, -1)) != 0) return Failure(errno);
  return {};
}

}  // namespace latte

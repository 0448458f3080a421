#include "src/jobs/convert/staging_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/strings.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMarker = "written-by-latte";
constexpr std::string_view kMarkerText = "latte: an unfinished copy; files of the one it replaces:";
constexpr int64_t kMaxMarkerBytes = 1 << 20;

std::string MarkerOf(const std::string& folder) { return fmt::format("{}/{}", folder, kMarker); }

// "123" or "123-4".
bool IsNumber(std::string_view text) {
  const size_t dash = text.find('-');
  return IsDigits(text.substr(0, dash)) &&
         (dash == std::string_view::npos || IsDigits(text.substr(dash + 1)));
}

// Whether `entry` is "NAME.123" + `end`.
bool IsLeftover(std::string_view entry, std::string_view name, std::string_view end) {
  if (entry.size() <= name.size() + 1 + end.size() || !entry.starts_with(name) ||
      !entry.ends_with(end) || entry[name.size()] != '.')
    return false;
  entry.remove_prefix(name.size() + 1);
  entry.remove_suffix(end.size());
  return IsNumber(entry);
}

std::string FolderOf(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

// Makes the entries of a folder survive a power failure, if the file system can.
void SyncFolder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)fsync(fd);
  close(fd);
}

// Returns false if the system lacks the call or the file system does not support it; errno tells
// more.
bool SwapNames(const std::string& a, const std::string& b) {
  return syscall(SYS_renameat2, AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

// Locks the marker of a leftover whose program has ended. Returns the descriptor or −1; sets `held`
// if a running program has the lock.
int LockMarker(const std::string& folder, bool& held) {
  struct stat st = {};
  // Open for writing: network file systems require it for locks.
  const int fd = open(MarkerOf(folder).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return -1;
  const bool ours = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
  const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
  held = !locked && errno == EWOULDBLOCK;
  if (ours && locked) return fd;
  close(fd);
  return -1;
}

// The names that a marker lists; an error if the file is not a marker of Latte.
Result<std::vector<std::string>> MarkedNames(const std::string& folder) {
  LATTE_ASSIGN_OR_RETURN(const std::string text, ReadFile(MarkerOf(folder), kMaxMarkerBytes));
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (lines.empty() || lines.front() != kMarkerText) return Corrupt(folder + ": no marker");
  lines.erase(lines.begin());
  std::erase_if(lines, [](const std::string& name) { return name.find('/') != std::string::npos; });
  return lines;
}

}  // namespace

Result<StagingFolder> StagingFolder::Make(const std::string& target, unsigned mode) {
  StagingFolder out;
  out.target_ = target;
  out.Sweep();
  LATTE_RETURN_IF_ERROR(out.MakeFolder(mode));
  LATTE_RETURN_IF_ERROR(out.Mark(mode));
  return out;
}

Result<StagingFolder> StagingFolder::MakeScratch(const std::string& name) {
  const char* parent = std::getenv("TMPDIR");
  const bool given = parent != nullptr && *parent != '\0';
  Result<StagingFolder> out = Make(fmt::format("{}/{}", given ? parent : "/tmp", name), 0700);
  if (!out) out.error().message += "; set TMPDIR to a folder with room";
  return out;
}

StagingFolder::StagingFolder(StagingFolder&& other) noexcept
    : target_(std::move(other.target_)),
      folder_(std::exchange(other.folder_, {})),
      marker_(std::exchange(other.marker_, -1)),
      notes_(std::move(other.notes_)) {}

StagingFolder& StagingFolder::operator=(StagingFolder&& other) noexcept {
  std::swap(target_, other.target_);
  std::swap(folder_, other.folder_);
  std::swap(marker_, other.marker_);
  std::swap(notes_, other.notes_);
  return *this;
}

StagingFolder::~StagingFolder() {
  std::error_code ignored;
  if (!folder_.empty()) {
    fs::remove_all(path(), ignored);
    unlink(MarkerOf(folder_).c_str());
    rmdir(folder_.c_str());
  }
  if (marker_ >= 0) close(marker_);
}

Status StagingFolder::MakeFolder(unsigned mode) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const std::string folder = i == 0 ? fmt::format("{}.{}.tmp", target_, getpid())
                                      : fmt::format("{}.{}-{}.tmp", target_, getpid(), i);
    if (mkdir(folder.c_str(), mode) == 0) {
      folder_ = folder;
      return {};
    }
    if (errno != EEXIST) break;  // leftover of the same process number that cannot be removed
  }
  return Fail(Code::kUnavailable, fmt::format("{}: no folder can be made there: {}",
                                              FolderOf(target_), std::strerror(errno)));
}

// The marker gets its name only after it is locked, so no other run finds it unlocked.
Status StagingFolder::Mark(unsigned mode) {
  const std::string marker = MarkerOf(folder_);
  const std::string unlocked = marker + ".0";
  marker_ = open(unlocked.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  bool made = marker_ >= 0 && (flock(marker_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK);
  const std::string text = std::string(kMarkerText) + "\n";
  made = made && write(marker_, text.data(), text.size()) == std::ssize(text) &&
         rename(unlocked.c_str(), marker.c_str()) == 0 && mkdir(path().c_str(), mode) == 0;
  if (made) return {};
  const int err = errno;
  unlink(unlocked.c_str());
  return Fail(Code::kUnavailable,
              fmt::format("{}: cannot be written: {}", folder_, std::strerror(err)));
}

void StagingFolder::Sweep() {
  const std::string name = fs::path(target_).filename().string();
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(FolderOf(target_), error), end; !error && it != end;
       it.increment(error)) {
    const std::string entry = it->path().filename().string();
    if (IsLeftover(entry, name, ".tmp") || IsLeftover(entry, name, ".old"))
      found.push_back(it->path().string());
  }
  for (const std::string& folder : found) SweepOne(folder);
}

void StagingFolder::SweepOne(const std::string& folder) {
  bool held = false;
  const int lock = LockMarker(folder, held);
  if (held) return;
  const Result<std::vector<std::string>> names = MarkedNames(folder);
  if (lock < 0 || !names) {
    notes_.push_back(folder +
                     ": may be what an interrupted run left; it is left alone, as nothing in it "
                     "says so: look at it and remove it");
    if (lock >= 0) close(lock);
    return;
  }
  const std::string old = folder + "/old";
  if (!Exists(target_) && rename(old.c_str(), target_.c_str()) == 0)
    notes_.push_back(target_ + ": put back, as a run that replaced it was killed");
  std::error_code ignored;
  fs::remove_all(folder + "/new", ignored);
  RemoveOld(folder, *names);
  close(lock);
}

// Deletes the old copy in `folder`, then the folder itself. Files that are not in `names` stay,
// without the marker, so that no run touches them.
void StagingFolder::RemoveOld(const std::string& folder, const std::vector<std::string>& names) {
  const std::string old = folder + "/old";
  for (const std::string& name : names) unlink(fmt::format("{}/{}", old, name).c_str());
  const bool rest = rmdir(old.c_str()) != 0 && errno != ENOENT;
  unlink(MarkerOf(folder).c_str());
  if (rest)
    notes_.push_back(old +
                     ": holds what was put into the folder while it was replaced; it is "
                     "kept there");
  else
    rmdir(folder.c_str());
}

Status StagingFolder::Exchange() {
  const std::string old = folder_ + "/old";
  const auto failure = [&](int err, const std::string& rest) {
    return Fail(Code::kUnavailable,
                fmt::format("{}: cannot be replaced: {}{}", target_, std::strerror(err), rest));
  };
  if (SwapNames(path(), target_)) {
    if (rename(path().c_str(), old.c_str()) == 0) return {};
    const int err = errno;
    (void)SwapNames(path(), target_);
    return failure(err, "");
  }
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) return failure(errno, "");
  // If the run is killed between the two renames, the next run restores the old copy.
  if (rename(target_.c_str(), old.c_str()) != 0) return failure(errno, "");
  if (rename(path().c_str(), target_.c_str()) == 0) return {};
  const int err = errno;
  if (rename(old.c_str(), target_.c_str()) == 0) return failure(err, "");
  return failure(err, "; the earlier copy is " + old);
}

Status StagingFolder::Publish(const std::vector<std::string>& replaced) {
  struct stat st = {};
  if (stat(target_.c_str(), &st) == 0) (void)chmod(path().c_str(), st.st_mode & 07777);
  SyncFolder(path());
  if (replaced.empty()) {
    if (rename(path().c_str(), target_.c_str()) != 0)
      return Fail(Code::kUnavailable,
                  fmt::format("{}: cannot be put there: {}", target_, std::strerror(errno)));
  } else {
    std::string names;
    for (const std::string& name : replaced) names += name + "\n";
    if (write(marker_, names.data(), names.size()) != std::ssize(names) || fsync(marker_) != 0)
      return Fail(Code::kUnavailable,
                  fmt::format("{}: cannot be written: {}", folder_, std::strerror(errno)));
    LATTE_RETURN_IF_ERROR(Exchange());
  }
  SyncFolder(FolderOf(target_));
  RemoveOld(std::exchange(folder_, {}), replaced);
  return {};
}

}  // namespace latte

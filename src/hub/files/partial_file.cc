#include "src/hub/files/partial_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/files/owners.h"
#include "src/hub/files/digest.h"
#include "src/hub/files/disk.h"

namespace latte {
namespace {

constexpr std::string_view kFirstLine = "latte-pull-1";
constexpr int64_t kMostStateBytes = 1 << 20;
constexpr mode_t kBytesMode = 0644;  // no other user may write, whatever the umask

std::string BytesName(const std::string& blob) { return blob + ".latte.incomplete"; }
std::string StateName(const std::string& blob) { return blob + ".latte.state"; }

std::vector<ByteRange> Whole(int64_t size) {
  return size == 0 ? std::vector<ByteRange>() : std::vector<ByteRange>{{0, size}};
}

// Whether no other user can have the file open for writing, and it has no other name.
bool IsOnlyOurs(const struct stat& info) {
  return S_ISREG(info.st_mode) && info.st_nlink == 1 && info.st_uid == geteuid() &&
         WhoElseMayWrite(info).empty();
}

// Opens the file that an earlier run left, or removes what is there and makes a new one.
Result<int> OpenBytes(const std::string& path) {
  int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat info = {};
  if (fd >= 0 && (fstat(fd, &info) != 0 || !IsOnlyOurs(info))) close(std::exchange(fd, -1));
  if (fd < 0) {
    LATTE_RETURN_IF_ERROR(RemoveFile(path));
    fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kBytesMode);
  }
  if (fd < 0) return DiskError(path, errno);
  if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return fd;
  close(fd);
  return Fail(Code::kUnavailable, path + ": another program is writing it; wait for it to end");
}

// The state of `blob`; everything is missing where its two files do not belong together.
PartialState ReadState(const std::string& blob, int64_t size) {
  const PartialState nothing{"", Whole(size)};
  struct stat info = {};
  if (lstat(BytesName(blob).c_str(), &info) != 0 || info.st_size != size || !IsOnlyOurs(info))
    return nothing;
  const Result<std::string> text = ReadFile(StateName(blob), kMostStateBytes);
  if (!text) return nothing;
  return ParseState(*text, size).value_or(nothing);
}

}  // namespace

std::string StateText(int64_t size, const PartialState& state) {
  std::string out = fmt::format("{}\nsize {}\ntag {}\n", kFirstLine, size, state.tag);
  for (const ByteRange& range : state.missing)
    out += fmt::format("missing {} {}\n", range.begin, range.end);
  return out + "end\n";
}

std::optional<PartialState> ParseState(std::string_view text, int64_t size) {
  PartialState out;
  std::istringstream lines{std::string(text)};
  std::string line;
  if (!std::getline(lines, line) || line != kFirstLine) return std::nullopt;
  if (!std::getline(lines, line) || line != fmt::format("size {}", size)) return std::nullopt;
  if (!std::getline(lines, line) || !line.starts_with("tag ")) return std::nullopt;
  out.tag = line.substr(4);
  int64_t at = 0;
  while (std::getline(lines, line) && line != "end") {
    std::istringstream words(line);
    std::string word;
    ByteRange range;
    if (!(words >> word >> range.begin >> range.end) || word != "missing") return std::nullopt;
    if (range.begin < at || range.end <= range.begin || range.end > size) return std::nullopt;
    at = range.end;
    out.missing.push_back(range);
  }
  if (line != "end") return std::nullopt;
  return out;
}

int64_t MissingBytes(const std::string& blob, int64_t size) {
  return MissingRanges(ReadState(blob, size).missing).bytes();
}

PartialFile::PartialFile(std::string blob, int64_t size, int fd, PartialState state)
    : blob_(std::move(blob)),
      path_(BytesName(blob_)),
      size_(size),
      fd_(fd),
      tag_(std::move(state.tag)),
      ranges_(std::move(state.missing)) {}

PartialFile::~PartialFile() {
  if (fd_ >= 0) close(fd_);
}

Result<std::unique_ptr<PartialFile>> PartialFile::Open(const std::string& blob, int64_t size) {
  PartialState state = ReadState(blob, size);
  const std::string path = BytesName(blob);
  LATTE_ASSIGN_OR_RETURN(const int fd, OpenBytes(path));
  std::unique_ptr<PartialFile> out(new PartialFile(blob, size, fd, std::move(state)));
  if (out->missing() == size && ftruncate(fd, 0) != 0) return DiskError(path, errno);
  if (ftruncate(fd, size) != 0) return DiskError(path, errno);
  return out;
}

std::optional<ByteRange> PartialFile::Claim(int64_t most) {
  const std::lock_guard lock(mutex_);
  return ranges_.Claim(undivided_ ? size_ : most);
}

void PartialFile::Release(ByteRange claim) {
  const std::lock_guard lock(mutex_);
  ranges_.Release(claim);
}

int64_t PartialFile::missing() const {
  const std::lock_guard lock(mutex_);
  return ranges_.bytes();
}

bool PartialFile::TakeComplete() {
  std::unique_lock lock(mutex_);
  if (taken_ || ranges_.bytes() > 0) return false;
  taken_ =
      true;  // a write of a connection whose claim was forgotten may be under way, but none begins
  written_.wait(lock, [&] { return writing_ == 0; });
  return true;
}

void PartialFile::Untake() {
  const std::lock_guard lock(mutex_);
  taken_ = false;
}

Status PartialFile::Write(int64_t at, std::span<const std::byte> bytes) {
  const ByteRange range{at, at + static_cast<int64_t>(bytes.size())};
  {
    const std::lock_guard lock(mutex_);
    if (taken_) return {};
    ++writing_;
  }
  int err = 0;
  while (!bytes.empty() && err == 0) {
    const ssize_t n = pwrite(fd_, bytes.data(), bytes.size(), at);
    if (n < 0 && errno != EINTR) err = errno;
    if (n < 0) continue;
    bytes = bytes.subspan(static_cast<size_t>(n));
    at += n;
  }
  const std::lock_guard lock(mutex_);
  --writing_;
  written_.notify_all();
  if (err != 0) return DiskError(path_, err);
  ranges_.Arrived(range);
  return {};
}

std::string PartialFile::tag() const {
  const std::lock_guard lock(mutex_);
  return tag_;
}

void PartialFile::SetTag(const std::string& tag) {
  const std::lock_guard lock(mutex_);
  tag_ = tag;
}

Status PartialFile::Save() {
  const std::lock_guard lock(mutex_);  // until it is written: no state may outlive a commit
  if (taken_) return {};
  const std::string text = StateText(size_, {tag_, ranges_.missing()});
  return WriteFile(StateName(blob_), std::as_bytes(std::span(text)));
}

void PartialFile::MakeUndivided() {
  const std::lock_guard lock(mutex_);
  if (!undivided_) RestartLocked();
  undivided_ = true;
}

bool PartialFile::undivided() const {
  const std::lock_guard lock(mutex_);
  return undivided_;
}

void PartialFile::Restart() {
  const std::lock_guard lock(mutex_);
  RestartLocked();
}

void PartialFile::RestartLocked() {
  std::remove(StateName(blob_).c_str());
  tag_.clear();
  taken_ = false;
  ranges_ = MissingRanges(Whole(size_));
}

void PartialFile::Discard() {
  const std::lock_guard lock(mutex_);
  RestartLocked();
  taken_ = true;  // nothing is to be saved
  std::remove(path_.c_str());
}

Status PartialFile::Verify(const HubFile& file, const std::atomic<bool>& stop) const {
  return VerifyOpenFile(fd_, file, stop);
}

Status PartialFile::Commit() {
  struct stat verified = {};
  struct stat named = {};
  if (fsync(fd_) != 0 || fstat(fd_, &verified) != 0) return DiskError(path_, errno);
  if (lstat(path_.c_str(), &named) != 0) return DiskError(path_, errno);
  if (named.st_dev != verified.st_dev || named.st_ino != verified.st_ino || !IsOnlyOurs(named))
    return Fail(Code::kUnavailable,
                path_ +
                    ": another program has changed it or put another file in its place; let "
                    "no other user write into the cache, and try again");
  if (close(std::exchange(fd_, -1)) != 0) return DiskError(path_, errno);
  if (rename(path_.c_str(), blob_.c_str()) != 0) return DiskError(blob_, errno);
  std::remove(StateName(blob_).c_str());
  return SyncFolderOf(blob_);
}

}  // namespace latte

#include "src/jobs/batch_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/jobs/batch_line.h"

namespace latte {
namespace {

constexpr const char* kAdvice = "give another output file, or --overwrite";

}  // namespace

BatchOutput::BatchOutput(BatchOutput&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      finished_(std::move(other.finished_)) {}

BatchOutput& BatchOutput::operator=(BatchOutput&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(finished_, other.finished_);
  return *this;
}

BatchOutput::~BatchOutput() {
  if (fd_ >= 0) close(fd_);
}

tl::unexpected<Error> BatchOutput::Failure(std::string_view what) const {
  return Fail(Code::kUnavailable, fmt::format("{}: {}: {}", path_, what, std::strerror(errno)));
}

Status BatchOutput::OpenFile(const std::string& path, int flags) {
  constexpr int kMode = 0644;
  const int fd = open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | flags, kMode);
  if (fd < 0) return Failure("the output file cannot be opened");
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return Failure("the output file cannot be locked");
  return Fail(Code::kUnavailable,
              path_ + ": another program is writing these results; wait for it to end");
}

Result<BatchOutput> BatchOutput::Open(const std::string& path, bool overwrite, const Known& known) {
  if (Exists(path) && !IsRegularFile(path))
    return InvalidArgument(path + ": expected a regular file for the results");
  BatchOutput out(path);
  LATTE_RETURN_IF_ERROR(out.OpenFile(path, 0));
  if (!overwrite) {
    LATTE_RETURN_IF_ERROR(out.KeepFinished(known));
  } else if (ftruncate(out.fd_, 0) != 0) {
    return out.Failure("the output file cannot be emptied");
  }
  return out;
}

Status BatchOutput::KeepFinished(const Known& known) {
  LATTE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path_));
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
  std::vector<std::string_view> kept;  // runs of lines
  size_t kept_bytes = 0;
  int64_t number = 0;
  size_t begin = 0;
  for (size_t end = 0; begin < text.size(); begin = end + 1) {
    ++number;
    const std::string where = fmt::format("{}: line {}", path_, number);
    end = text.find('\n', begin);
    if (end == std::string_view::npos) {
      if (BeginsBatchResult(text.substr(begin))) break;
      return Corrupt(
          fmt::format("{}: expected a result, found something else; {}", where, kAdvice));
    }
    const std::string_view line = text.substr(begin, end - begin);
    LATTE_ASSIGN_OR_RETURN(const bool keep, Keep(line, where, known));
    if (!keep) continue;
    kept_bytes += line.size() + 1;
    if (!kept.empty() && kept.back().data() + kept.back().size() == line.data())
      kept.back() = {kept.back().data(), kept.back().size() + line.size() + 1};
    else
      kept.emplace_back(line.data(), line.size() + 1);
  }
  return kept_bytes == text.size() ? Status() : Replace(kept);
}

Result<bool> BatchOutput::Keep(std::string_view line, const std::string& where,
                               const Known& known) {
  Result<BatchOutcome> outcome = ParseBatchResult(line, where);
  if (!outcome)
    return Corrupt(
        fmt::format("{}; expected a result of latte batch; {}", outcome.error().message, kAdvice));
  if (outcome->custom_id && !known(*outcome->custom_id))
    return InvalidArgument(
        fmt::format("{}: the input has no custom_id '{}': these are results of other requests; {}",
                    where, *outcome->custom_id, kAdvice));
  if (outcome->failed) return false;
  if (!finished_.insert(*outcome->custom_id).second)
    return InvalidArgument(fmt::format("{}: custom_id '{}' has a result already; {}", where,
                                       *outcome->custom_id, kAdvice));
  return true;
}

// In one step: whoever ends the program here finds the old file or the new one.
Status BatchOutput::Replace(std::span<const std::string_view> kept) {
  const std::string temp = path_ + ".tmp";
  LATTE_RETURN_IF_ERROR(OpenFile(temp, O_TRUNC));
  Status written;
  for (const std::string_view run : kept)
    if (written) written = Write(run);
  if (written && fsync(fd_) != 0) written = Failure("the output file cannot be written");
  if (written && std::rename(temp.c_str(), path_.c_str()) != 0)
    written = Failure("the output file cannot be replaced");
  if (!written) unlink(temp.c_str());
  return written;
}

Status BatchOutput::Write(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t n = write(fd_, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failure("results cannot be written");
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Status BatchOutput::Append(const JsonOut& line) { return Write(Dump(line) + "\n"); }

}  // namespace latte

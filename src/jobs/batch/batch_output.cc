#include "src/jobs/batch/batch_output.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/files/output_file.h"
#include "src/base/json_out.h"
#include "src/jobs/batch/batch_line.h"

namespace latte {
namespace {

constexpr const char* kAdvice = "give another output file, or --overwrite";

// Calls `line` for each line of `text` with its offset, and whether its line end is present.
template <class F>
Status ForEachLine(std::string_view text, const std::string& path, const F& line) {
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string where = fmt::format("{}: line {}", path, ++number);
    LATTE_RETURN_IF_ERROR(line(text.substr(begin, end - begin), where, end < text.size()));
    begin = end + 1;
  }
  return {};
}

// Such a file may be the user's own data: no flag allows to overwrite it.
tl::unexpected<Error> NoResult(const std::string& what) {
  return Corrupt(what +
                 "; expected a result of latte batch; give another output file, or remove it");
}

Result<BatchOutcome> ParseOutcome(std::string_view line, const std::string& where) {
  Result<BatchOutcome> outcome = ParseBatchResult(line, where);
  if (!outcome) return NoResult(outcome.error().message);
  return outcome;
}

Status CheckTorn(std::string_view line, const std::string& where) {
  if (BeginsBatchResult(line)) return {};
  return NoResult(where + ": found something else");
}

std::string_view TextOf(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

BatchOutput::BatchOutput(BatchOutput&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      fd_(std::exchange(other.fd_, -1)),
      forget_(other.forget_),
      finished_(std::move(other.finished_)) {}

BatchOutput& BatchOutput::operator=(BatchOutput&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(target_, other.target_);
  std::swap(fd_, other.fd_);
  std::swap(forget_, other.forget_);
  std::swap(finished_, other.finished_);
  return *this;
}

BatchOutput::~BatchOutput() {
  if (fd_ >= 0) close(fd_);
}

tl::unexpected<Error> BatchOutput::Failure(std::string_view what) const {
  return Fail(Code::kUnavailable, fmt::format("{}: {}: {}", path_, what, std::strerror(errno)));
}

Status BatchOutput::OpenFile() {
  constexpr int kMode = 0644;
  const int fd = open(target_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, kMode);
  if (fd < 0) return Failure("the output file cannot be opened");
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
  // A file system without locks is accepted.
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return {};
  return Fail(Code::kUnavailable,
              path_ + ": another program is writing these results; wait for it to end");
}

Result<BatchOutput> BatchOutput::Open(const std::string& path, bool overwrite, const Known& known) {
  if (path.empty()) return InvalidArgument("expected the name of an output file, found none");
  if (Exists(path) && !IsRegularFile(path))
    return InvalidArgument(path + ": expected a regular file for the results");
  BatchOutput out(path);
  std::error_code missing;
  const std::filesystem::path real = std::filesystem::canonical(path, missing);
  out.target_ = missing ? path : real.string();  // keeps a symbolic link intact
  LATTE_RETURN_IF_ERROR(out.OpenFile());
  out.forget_ = overwrite;
  LATTE_RETURN_IF_ERROR(overwrite ? out.CheckResults() : out.KeepFinished(known));
  return out;
}

Status BatchOutput::CheckResults() const {
  LATTE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(target_));
  return ForEachLine(TextOf(*file), path_,
                     [](std::string_view line, const std::string& where, bool whole) -> Status {
                       if (!whole) return CheckTorn(line, where);
                       LATTE_RETURN_IF_ERROR(ParseOutcome(line, where));
                       return {};
                     });
}

Status BatchOutput::KeepFinished(const Known& known) {
  LATTE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(target_));
  const std::string_view text = TextOf(*file);
  std::vector<std::string_view> kept;  // runs of consecutive lines
  size_t kept_bytes = 0;
  LATTE_RETURN_IF_ERROR(ForEachLine(
      text, path_, [&](std::string_view line, const std::string& where, bool whole) -> Status {
        if (!whole) return CheckTorn(line, where);
        LATTE_ASSIGN_OR_RETURN(const bool keep, Keep(line, where, known));
        if (!keep) return {};
        kept_bytes += line.size() + 1;
        if (!kept.empty() && kept.back().data() + kept.back().size() == line.data())
          kept.back() = {kept.back().data(), kept.back().size() + line.size() + 1};
        else
          kept.emplace_back(line.data(), line.size() + 1);
        return {};
      }));
  return kept_bytes == text.size() ? Status() : Replace(kept);
}

Result<bool> BatchOutput::Keep(std::string_view line, const std::string& where,
                               const Known& known) {
  LATTE_ASSIGN_OR_RETURN(const BatchOutcome outcome, ParseOutcome(line, where));
  if (outcome.custom_id && !known(*outcome.custom_id))
    return InvalidArgument(
        fmt::format("{}: the input has no custom_id '{}': these are results of other requests; {}",
                    where, *outcome.custom_id, kAdvice));
  if (outcome.failed) return false;
  if (!finished_.insert(*outcome.custom_id).second)
    return InvalidArgument(fmt::format("{}: custom_id '{}' has a result already; {}", where,
                                       *outcome.custom_id, kAdvice));
  return true;
}

// Renames in one step: after an interruption, either the old file or the new one exists.
Status BatchOutput::Replace(std::span<const std::string_view> kept) {
  const FileKind checked = {"results", [](std::string_view) { return true; }};
  LATTE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(target_, checked));
  for (const std::string_view run : kept)
    LATTE_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span(run))));
  LATTE_RETURN_IF_ERROR(file.Commit());
  return OpenFile();
}

Status BatchOutput::Forget() {
  if (std::exchange(forget_, false) && ftruncate(fd_, 0) != 0)
    return Failure("the output file cannot be emptied");
  return {};
}

Status BatchOutput::Write(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t n = write(fd_, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      tl::unexpected<Error> failure = Failure("results cannot be written");
      failure.value().message += "; the same command goes on from there";
      return failure;
    }
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Status BatchOutput::Append(std::string_view line) {
  LATTE_RETURN_IF_ERROR(Forget());
  return Write(std::string(line) + "\n");
}

Status BatchOutput::Close() {
  LATTE_RETURN_IF_ERROR(Forget());
  // Some file systems report a full disk only now.
  if (fsync(fd_) != 0 && errno != EINVAL) return Failure("results cannot be written");
  if (close(std::exchange(fd_, -1)) != 0) return Failure("results cannot be written");
  return {};
}

}  // namespace latte

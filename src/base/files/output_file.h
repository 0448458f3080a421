// Writes a file completely or not at all: into a temporary file in the same folder, which replaces
// the target in one step. On failure the old file stays. A target that cannot be replaced (a
// device, a pipe, a descriptor such as /dev/stdout) is written directly.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "latte/status.h"

namespace latte {

// Which existing file may be replaced.
struct FileKind {
  std::string_view what;                 // "logits of an earlier run (…)"
  bool (*holds)(std::string_view text);  // given a file's first MiB; not called for an empty file
};

// Whether OutputFile may write `path`, for a check before long work. Errors: kInvalidArgument if
// `path` is empty, a folder, a dangling link, or a file of another kind; kNotFound if its folder is
// missing; kUnavailable if it is not writable.
[[nodiscard]] Status MayReplace(const std::string& path, const FileKind& kind);

// Removes a temporary file that an ended program left behind, if it is a regular file of this user.
// A file that is still being written is locked, and stays.
void RemoveAbandoned(const std::string& path);

class OutputFile {
 public:
  // Creates the temporary file "PATH.latte-TID.tmp" in the folder of the file that links lead to,
  // after removing leftovers of earlier runs. Errors: as MayReplace; kUnavailable.
  [[nodiscard]] static Result<OutputFile> Create(const std::string& path, const FileKind& kind);

  // For names that the caller owns: checks neither the existing file nor leftovers, and Commit does
  // not force bytes to the disk. Errors: kUnavailable.
  [[nodiscard]] static Result<OutputFile> CreateOwn(const std::string& path);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // removes a temporary file that was not committed

  // Errors: kUnavailable with the system's reason.
  [[nodiscard]] Status Write(std::span<const std::byte> bytes) const;
  // Replaces the target. Nothing may be written afterwards. Errors: as Write.
  [[nodiscard]] Status Commit();

 private:
  OutputFile() = default;
  [[nodiscard]] Status OpenTemp(unsigned mode);
  tl::unexpected<Error> Failure(int err) const;

  std::string path_;    // as given by the caller
  std::string target_;  // after following links
  std::string temp_;    // empty: written in place, or committed
  bool forced_ = true;
  int fd_ = -1;
};

}  // namespace latte

// A file that is written as a whole or not at all. Bytes go into a temporary file beside it, which
// takes its place in one step; a failure leaves the file that was there. What cannot be replaced
// (a device, a pipe, a descriptor such as /dev/stdout) is written to as it is.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "latte/status.h"

namespace latte {

// What a file that is there may hold if it is to be replaced.
struct FileKind {
  std::string_view what;                 // "logits of an earlier run (…)"
  bool (*holds)(std::string_view text);  // of a file's first MiB; not asked about an empty file
};

// Whether OutputFile may write `path`: for a look before long work.
// Errors: kInvalidArgument when `path` is empty, a folder, a link that leads nowhere, or a file of
// another kind; kNotFound without its folder; kUnavailable when it may not be written.
[[nodiscard]] Status MayReplace(const std::string& path, const FileKind& kind);

// Removes a temporary file that a program which has ended left behind, if it is a regular file of
// this user. One that is still written is locked, and stays.
void RemoveAbandoned(const std::string& path);

class OutputFile {
 public:
  // Makes the temporary file "PATH.latte-PID.tmp" beside the file that links lead to. Removes
  // first what earlier runs left of such. Errors: of MayReplace; kUnavailable.
  [[nodiscard]] static Result<OutputFile> Create(const std::string& path, const FileKind& kind);

  // For callers that own the name and what stands under it: looks at neither it nor leftovers, and
  // Commit does not force bytes to the disk. Errors: kUnavailable.
  [[nodiscard]] static Result<OutputFile> CreateOwn(const std::string& path);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // removes what Commit did not put in place

  // Errors: kUnavailable with the system's reason.
  [[nodiscard]] Status Write(std::span<const std::byte> bytes) const;
  // Puts the file in its place. Nothing may be written afterwards. Errors: as Write.
  [[nodiscard]] Status Commit();

 private:
  OutputFile() = default;
  [[nodiscard]] Status OpenTemp(unsigned mode);
  tl::unexpected<Error> Failure(int err) const;

  std::string path_;    // as the caller calls it
  std::string target_;  // where links lead
  std::string temp_;    // empty: written in place, or committed
  bool forced_ = true;
  int fd_ = -1;
};

}  // namespace latte

// The output file of a batch: whole lines only, in the order in which requests finish. Also reads
// the results that an interrupted run left.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

#include "latte/status.h"

namespace latte {

// Thread-compatible. The file is locked while this object exists, if the file system supports
// locks, so only one program uses it.
class BatchOutput {
 public:
  // Whether the input contains a custom_id.
  using Known = std::function<bool(const std::string& custom_id)>;

  // Creates the file or resumes with it: successful results are kept, failed ones and a truncated
  // last line are removed. With `overwrite`, all earlier results are discarded once the first new
  // one is written. A file with other content is never changed.
  // Errors: kInvalidArgument if the file has a result that is not `known`, or has it twice;
  // kCorrupt if a line is not a result; kUnavailable if the file cannot be written or is in use.
  // After an error the file is unchanged.
  [[nodiscard]] static Result<BatchOutput> Open(const std::string& path, bool overwrite,
                                                const Known& known);
  BatchOutput(BatchOutput&& other) noexcept;
  BatchOutput& operator=(BatchOutput&& other) noexcept;
  ~BatchOutput();

  // The custom_ids of the earlier results.
  const std::unordered_set<std::string>& finished() const { return finished_; }

  // Appends a line and hands it to the operating system. Errors: kUnavailable.
  [[nodiscard]] Status Append(std::string_view line);

  // Flushes the complete results to the disk. Errors: kUnavailable.
  [[nodiscard]] Status Close();

 private:
  explicit BatchOutput(std::string path) : path_(std::move(path)) {}
  Status OpenFile();
  Status CheckResults() const;
  Status KeepFinished(const Known& known);
  Result<bool> Keep(std::string_view line, const std::string& where, const Known& known);
  Status Replace(std::span<const std::string_view> kept);
  Status Forget();
  Status Write(std::string_view text) const;
  tl::unexpected<Error> Failure(std::string_view what) const;

  std::string path_;    // as given by the caller
  std::string target_;  // after following links
  int fd_ = -1;
  bool forget_ = false;  // the first result replaces the content of the file
  std::unordered_set<std::string> finished_;
};

}  // namespace latte

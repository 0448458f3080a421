// The file of a batch's results: whole lines only, in the order in which requests finish, and what
// an interrupted run left in it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"

namespace latte {

// Thread-compatible. One program at a time: the file is locked while this lives,
// where its file system has locks.
class BatchOutput {
 public:
  // Whether a custom_id stands in the input.
  using Known = std::function<bool(const std::string& custom_id)>;

  // Makes the file, or goes on with one: results that succeeded are kept, the others and a last
  // line that was torn off are taken out. With `overwrite` the results of any input are given up,
  // once the first of the new ones is there. A file with anything but results is left alone.
  // Errors: kInvalidArgument when the file has a result that is not `known`, or has it twice;
  // kCorrupt when a line is no result; kUnavailable when the file cannot be written or is in use.
  // After an error the file is as it was.
  [[nodiscard]] static Result<BatchOutput> Open(const std::string& path, bool overwrite,
                                                const Known& known);
  BatchOutput(BatchOutput&& other) noexcept;
  BatchOutput& operator=(BatchOutput&& other) noexcept;
  ~BatchOutput();

  // custom_ids of the results that were there.
  const std::unordered_set<std::string>& finished() const { return finished_; }

  // Adds a line; once it returns, the system has it. Errors: kUnavailable.
  [[nodiscard]] Status Append(const JsonOut& line);

  // The results are complete: forces them to the disk. Errors: kUnavailable.
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

  std::string path_;    // as the caller calls it
  std::string target_;  // where links lead
  int fd_ = -1;
  bool forget_ = false;  // what is in the file goes with the first result
  std::unordered_set<std::string> finished_;
};

}  // namespace latte

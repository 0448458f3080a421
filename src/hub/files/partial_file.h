// A partly downloaded blob: "<blob>.latte.incomplete" with the bytes and "<blob>.latte.state"
// with the missing ranges. An interrupted download resumes from both.
// The names differ from huggingface_hub's "<blob>.incomplete", because huggingface_hub takes the
// length of such a file for the number of received bytes. Here, bytes arrive in several places.
//
// The blob gets its name only when no process can change its bytes any more: only this user may
// write to the file, it has no other name, it is locked against other processes, no thread writes
// to it, and it is closed.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "latte/status.h"

#include "src/hub/files/missing_ranges.h"
#include "src/hub/repo/listing.h"

namespace latte {

// The text of a state file. `tag`: the ETag of the server that holds the bytes; empty if unknown.
struct PartialState {
  std::string tag;
  std::vector<ByteRange> missing;
};
std::string StateText(int64_t size, const PartialState& state);
// Nothing if `text` is no state of a file of `size` bytes.
std::optional<PartialState> ParseState(std::string_view text, int64_t size);

// Bytes that a download of `size` bytes to `blob` still needs; `size` if nothing is there.
int64_t MissingBytes(const std::string& blob, int64_t size);

// Thread-safe.
class PartialFile {
 public:
  // Continues what is there, or begins anew: also if others could write into the file that is
  // there. Errors: kUnavailable, also while another process has it open; kExhausted if the disk is
  // full; kInvalidArgument if a folder is in the way.
  [[nodiscard]] static Result<std::unique_ptr<PartialFile>> Open(const std::string& blob,
                                                                 int64_t size);
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile();

  std::optional<ByteRange> Claim(int64_t most);  // `most` does not count for an undivided file
  void Release(ByteRange claim);
  // The server sends the file as a whole only: forgets every byte and every claim, once. Later
  // claims are the whole file.
  void MakeUndivided();
  bool undivided() const;
  int64_t missing() const;
  // True once for a complete file: its caller verifies and commits it. No write is under way then,
  // and none follows.
  bool TakeComplete();
  void Untake();  // the caller did not come to it

  // Writes the first bytes of a claim. Those that come late, to a complete file, are dropped.
  // Errors: kExhausted if the disk is full; kUnavailable.
  [[nodiscard]] Status Write(int64_t at, std::span<const std::byte> bytes);

  std::string tag() const;
  void SetTag(const std::string& tag);

  // Writes the state file, so that a later process can continue. Errors: as Write.
  [[nodiscard]] Status Save();
  // Forgets every byte.
  void Restart();
  // Removes both files. Nothing may be written afterwards.
  void Discard();
  // Errors: of VerifyOpenFile.
  [[nodiscard]] Status Verify(const HubFile& file, const std::atomic<bool>& stop) const;
  // Forces the bytes to the disk, closes the file, and gives it its name. Errors: as Write;
  // kUnavailable if another file has taken its place.
  [[nodiscard]] Status Commit();

 private:
  void RestartLocked();
  PartialFile(std::string blob, int64_t size, int fd, PartialState state);

  const std::string blob_;
  const std::string path_;
  const int64_t size_;
  int fd_;
  mutable std::mutex mutex_;
  std::string tag_;
  MissingRanges ranges_;
  int writing_ = 0;  // calls of Write
  std::condition_variable written_;
  bool taken_ = false;
  bool undivided_ = false;
};

}  // namespace latte

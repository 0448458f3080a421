// Files as values: whole-file reads with a size cap, and read-only memory maps. Every failure names
// the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "latte/status.h"

namespace latte {

// A whole regular file as text.
// Errors: kNotFound; kCorrupt when it is not a regular file or larger than `max_bytes`;
// kUnavailable when unreadable.
[[nodiscard]] Result<std::string> ReadFile(const std::string& path, int64_t max_bytes);

// Replaces `path` by `bytes` in one step, whatever exists there. For names that the caller owns;
// names from users go through OutputFile (output_file.h). Errors: kUnavailable.
[[nodiscard]] Status WriteFile(const std::string& path, std::span<const std::byte> bytes);

// Whether the name exists, even as a dangling link. An optional file that exists but cannot be read
// must be an error: ignoring it would change the model's output.
bool Exists(const std::string& path);
bool IsRegularFile(const std::string& path);
bool IsDirectory(const std::string& path);

// A read-only, shared mapping of a regular file; processes that map the same file share its pages.
// Immutable, thread-safe. The bytes stay valid as long as any copy of the shared_ptr lives and no
// other program truncates the file; for that case see map_guard.h.
class MappedFile {
 public:
  // Errors: as ReadFile, without the size cap.
  [[nodiscard]] static Result<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, const std::byte* data, size_t size);
  std::string path_;
  const std::byte* data_;
  size_t size_;
  std::string lost_;  // message of the guard if the bytes are lost
  int guard_ = -1;
};

// Asks the system to read mapped bytes that will be used soon. Pages in memory stay there.
// No error: without the advice they are read when they are touched.
void ReadAhead(std::span<const std::byte> bytes);

// What this process has read from disk since it began, mapped files included; network file systems
// do not count. nullopt if the system does not tell.
std::optional<int64_t> BytesReadFromDisk();

}  // namespace latte

// Checksums of downloaded files.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "src/hub/repo/listing.h"

namespace latte {

// Called with the number of bytes that were read since the last call.
using BytesRead = std::function<void(int64_t)>;

// Whether the file open as `fd` is `file`: its length, and its SHA-256, or git's SHA-1 of a blob
// ("blob <size>\0" and the content). Errors: kCorrupt with both checksums; kUnavailable if it
// cannot be read; kCancelled when `stop` becomes true.
[[nodiscard]] Status VerifyOpenFile(int fd, const HubFile& file, const std::atomic<bool>& stop,
                                    const BytesRead& read = {});

// The same for the file at `path`. Links are not followed. Errors: kCorrupt also if it is no
// regular file.
[[nodiscard]] Status VerifyFile(const std::string& path, const HubFile& file,
                                const std::atomic<bool>& stop, const BytesRead& read = {});

}  // namespace latte

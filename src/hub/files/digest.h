// Checksums of downloaded files.
#pragma once

#include <atomic>
#include <string>

#include "src/hub/repo/listing.h"

namespace latte {

// Whether the file at `path` is `file`: its length, and its SHA-256, or git's SHA-1 of a blob ("blob
// <size>\0" and the content). Errors: kCorrupt with both checksums; kUnavailable if it cannot be read;
// kCancelled when `stop` becomes true.
[[nodiscard]] Status VerifyFile(const std::string& path, const HubFile& file,
                                const std::atomic<bool>& stop);

}  // namespace latte

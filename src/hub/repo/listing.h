// The Hub's listing of the files of a repository. Names and sizes come from a server: a name that
// would leave the repository's folder is refused here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

namespace latte {

struct HubFile {
  std::string path;  // "config.json", "additional_chat_templates/tool_use.jinja"
  int64_t size = 0;  // bytes
  // Name of the blob and checksum of the content: SHA-256 for files in large file storage (64
  // digits), otherwise git's SHA-1 of a blob (40 digits).
  std::string oid;

  bool is_large() const { return oid.size() == 64; }
};

struct Listing {
  std::string commit;  // 40 digits
  std::vector<HubFile> files;
};

// A file name that can be created below a folder: parts neither empty nor "." nor "..", at most 255
// bytes each, without control characters and backslashes.
bool IsSafePath(std::string_view path);

// Reads the answer of GET /api/models/ORG/NAME/revision/REV?blobs=true: `sha` and `siblings` with
// `rfilename`, `size`, `blobId` and, for large files, `lfs.sha256` and `lfs.size`.
// Source: huggingface_hub, HfApi.model_info. `where` names the answer in messages.
// Errors: kCorrupt.
[[nodiscard]] Result<Listing> ParseListing(std::string_view json, const std::string& where);

}  // namespace latte

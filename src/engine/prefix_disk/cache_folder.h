// The folder of the prefix files: DIR/MODEL/FILE, both names 32 hexadecimal digits. Other files in
// it are left alone. Only its owner may read the files, because they come from prompts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "latte/status.h"

namespace latte {

// Makes sure that `dir` and the model's folder in it exist, with mode 0700 if they are new.
// Errors: kInvalidArgument when either is no folder, is another user's or others may write to it
// (or, for the model's, read it); kUnavailable when they cannot be made.
[[nodiscard]] Status OpenCacheFolder(const std::string& dir, const std::string& model);

// Removes a file of the folder, if it is a prefix: a stranger's may have a name like ours.
void RemoveCached(const std::string& path);

struct CachedFile {
  std::string name;  // "MODEL/FILE"
  int64_t bytes = 0;
};

// The files of all models, least recently used first, by name and size alone. Removes the remains
// of interrupted saves; files of saves under way are locked, and stay.
std::vector<CachedFile> ScanCacheFolder(const std::string& dir);

}  // namespace latte

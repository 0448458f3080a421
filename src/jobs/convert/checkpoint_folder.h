// Decides which folders a checkpoint may be written to. Only an empty folder may be replaced or,
// with --force, the files of an earlier checkpoint; never the source, and never a folder that
// contains anything else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

namespace latte {

struct CheckpointFolder {
  std::string path;  // without links and without a trailing slash
  std::vector<std::string>
      files;  // its present files, all of which may be deleted; empty: no folder or an empty one
};

// Checks that a checkpoint may be written to `dir`. `source`: the folder that it is made from, or
// empty. Files that `source` has too, byte for byte, count as files of a checkpoint.
// Errors: kInvalidArgument naming the obstacle; kNotFound if the parent folder is missing;
// kUnavailable if the folder cannot be read.
[[nodiscard]] Result<CheckpointFolder> FindCheckpointFolder(const std::string& dir,
                                                            const std::string& source, bool force);

// Whether a file of that name belongs to a checkpoint: config.json,
// model-00001-of-00002.safetensors, tokenizers, chat templates. Not a README, a licence or weights
// with other names.
bool IsCheckpointFile(std::string_view name);

}  // namespace latte

// Which folders a checkpoint may be written to. The rule: nothing is replaced but an empty folder,
// or, if forced, the files of an earlier checkpoint; never the source, and never a folder with
// anything else in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

namespace latte {

struct CheckpointFolder {
  std::string path;  // where links lead, no slash at its end
  std::vector<std::string>
      files;  // in it now, all of which may go; empty: no folder or an empty one
};

// `dir`, refused unless a checkpoint may be written there. `source`: the folder that it is made of,
// or empty. Files that `source` has too, byte for byte, count as those of a checkpoint.
// Errors: kInvalidArgument naming what is in the way; kNotFound without a folder around it;
// kUnavailable when it cannot be read.
[[nodiscard]] Result<CheckpointFolder> FindCheckpointFolder(const std::string& dir,
                                                            const std::string& source, bool force);

// Whether a file of that name belongs to checkpoints: config.json,
// model-00001-of-00002.safetensors, tokenizers, chat templates. Not a README, a licence or weights
// of other names.
bool IsCheckpointFile(std::string_view name);

}  // namespace latte

// From what a user types as MODEL to a folder.
#pragma once

#include <string>

#include "latte/status.h"

namespace latte {

// The folder of `model`: a folder or .json file as it stands; "tiny", the model that comes with
// Latte, looked for beside the program and beside liblatte (installed: ../share/latte/models/tiny;
// in a build tree: models/tiny of a parent folder); or "org/name" in the local Hugging Face cache,
// looked for where huggingface_hub does: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub,
// XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub, with ~ and $NAME in them as Python has
// it. Of a cached model the snapshot that refs/main names counts, or the only one.
// Errors: kNotFound listing where it was looked for.
[[nodiscard]] Result<std::string> ResolveModelPath(const std::string& model);

}  // namespace latte

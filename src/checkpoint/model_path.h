// Resolves the MODEL argument of a command to a folder.
#pragma once

#include <string>

#include "latte/status.h"

namespace latte {

// The folder of `model`, which is one of
// - a folder or .json file, returned unchanged;
// - "tiny" or "tiny-sparse", the models that come with Latte, searched next to the program and next to
//   liblatte (installed: ../share/latte/models/tiny; in a build tree: models/tiny of a parent folder);
// - "org/name" in the local Hugging Face cache (hub_cache.h). The snapshot that refs/main names is
//   used, or the only one;
// - "org/name@revision": the snapshot that refs/<revision> names, or of that commit.
// Errors: kNotFound listing the searched places.
[[nodiscard]] Result<std::string> ResolveModelPath(const std::string& model);

}  // namespace latte

// Resolves the MODEL argument of a command to a folder or a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "latte/status.h"

namespace latte {

// The folder or file of `model`, which is one of
// - a folder or a .json file, returned unchanged;
// - a GGUF file, which may be any part of a split one, returned unchanged; or a folder that has no
//   safetensors file but one GGUF model: its file, or its first part;
// - "tiny" or "tiny-sparse", the models that come with Latte, searched next to the program and next
//   to liblatte (installed: ../share/latte/models/tiny; in a build tree: models/tiny of a parent
//   folder);
// - "org/name" in the local Hugging Face cache (hub_cache.h). The snapshot that refs/main names is
//   used, or the only one. If it has no safetensors file but one GGUF model, that is the model;
// - "org/name:quant": the GGUF model of that quant in the snapshot (gguf_sets.h);
// - with "@revision" at the end of both: the snapshot that refs/<revision> names, or of that
//   commit.
// Errors: kNotFound listing the searched places and the known model with the nearest name; of
// ParseHubName and ChooseGgufSet.
[[nodiscard]] Result<std::string> ResolveModelPath(const std::string& model);

// "tiny" and "tiny-sparse".
std::vector<std::string> BundledModels();

// A model of the Hugging Face cache.
struct CachedModel {
  std::string name;        // "org/name"; "org/name:quant" for a GGUF model
  std::string path;        // its folder or file; empty: it is not complete
  int64_t gguf_bytes = 0;  // of a GGUF model, as far as it is there
};

// The models of all repositories in the cache, of the snapshots that ResolveModelPath uses.
std::vector<CachedModel> CachedModels();

// Names that MODEL may have: the bundled models, the models in the cache and, if `like` is a path,
// what is in its folder (at most 1,000 names of each).
std::vector<std::string> KnownModels(const std::string& like = "");

}  // namespace latte

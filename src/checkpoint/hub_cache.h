// The Hugging Face cache: its place and the names of its folders.
//
// Layout, from huggingface_hub: HUB/models--org--name/{refs/<revision>, snapshots/<commit>/<file>,
// blobs/<etag>}. A ref holds a commit, and the files of a snapshot are relative links to blobs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

namespace latte {

// HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub or
// ~/.cache/huggingface/hub, whichever is set first, with ~ and $NAME expanded as in Python.
std::string HubCacheFolder();

// HF_HOME, XDG_CACHE_HOME/huggingface or ~/.cache/huggingface: holds the user's token.
std::string HubHomeFolder();

// As os.path.expanduser and os.path.expandvars: "~" and "~user" at the beginning, $NAME and
// ${NAME}. An unset variable stays unchanged.
std::string ExpandedPath(const std::string& path);

// Exactly "org/name", each part a plain name.
bool IsRepoId(std::string_view text);

// A branch, a tag or a commit: letters, digits and "-_./", no part empty or beginning with '.'.
bool IsRevision(std::string_view text);

// A repository of the Hub and what is meant of it; a part that is not given is empty.
struct HubName {
  std::string repo;
  std::string revision;
  std::string quant;  // of GGUF files: "Q4_K_M"
};

// Reads "org/name", "org/name@revision", "org/name:quant" and "org/name:quant@revision"; the last
// two parts may change places. A quant is a word of letters, digits and "-_." that does not begin
// with '.'. Errors: kInvalidArgument.
[[nodiscard]] Result<HubName> ParseHubName(std::string_view text);

// The repositories that the cache has a folder of, sorted; at most 1,000.
std::vector<std::string> CachedRepos();

// "models--org--name". Requires: IsRepoId(repo).
std::string RepoFolderName(std::string_view repo);

}  // namespace latte

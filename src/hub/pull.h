// Downloads a repository of the Hub into the Hugging Face cache.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "src/hub/download.h"
#include "src/hub/repo/selection.h"

namespace latte {

struct PullRequest {
  std::string repo;               // "org/name"
  std::string revision = "main";  // a branch, a tag or a commit
  Selection selection;
  bool dry_run = false;    // ends after the plan
  bool any_model = false;  // also a model that Latte does not run
  bool verify = false;     // compares also the blobs that were compared before
  DownloadOptions download;
};

// The files of a pull, and the bytes that it will fetch.
struct PullPlan {
  struct File {
    HubFile file;
    int64_t missing = 0;  // bytes; 0 also for a file whose content is that of an earlier one
  };
  std::string commit;
  std::string path;  // of the snapshot, or of the GGUF file, or first part, in it
  std::vector<File> files;
  int64_t bytes = 0;    // of all files
  int64_t missing = 0;  // of them
};

struct PullEvents {
  std::function<void(const PullPlan&)> planned;
  std::function<void(int64_t done, int64_t total)> checked;   // bytes of blobs that are there
  std::function<void(int64_t done, int64_t total)> progress;  // about five times a second
  std::function<bool()> interrupted;  // asked often; true: end, and leave what can be continued
};

// Lists the repository, chooses files, verifies what is there, downloads what is missing,
// config.json first, verifies it and publishes the snapshot. One process at a time downloads a
// repository; others wait. Errors: of FaultOfStatus and FaultOfNet, ParseListing, SelectFiles,
// RepoFolder, CheckBlobs, CheckRoom and Download::Run; kUnsupported for a model that Latte does not
// run, after config.json, and for a quant that it does not read, before anything.
[[nodiscard]] Result<PullPlan> Pull(const HubEnvironment& hub, PullRequest request,
                                    const HttpFactory& http, std::atomic<bool>& stop,
                                    const PullEvents& events);

}  // namespace latte

// Threads, cache and workspace of a runner. Runners that never compute at the same time may share
// them, such as the runner of a group's engine and the runner of sequences that are spread over
// groups.
#pragma once

#include "src/base/thread_pool.h"
#include "src/cache/latent_cache.h"
#include "src/tensor/workspace.h"

namespace latte {

struct RunnerMemory {
  // count: of threads; 0: one per CPU. Throws OutOfMemory.
  RunnerMemory(int count, LatentCache rows, const Device& device)
      : threads(count), cache(std::move(rows)), workspace(device) {}

  ThreadPool threads;
  LatentCache cache;
  Workspace workspace;
};

}  // namespace latte

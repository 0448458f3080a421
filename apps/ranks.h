// Several processes that share a model's weights: --tp, --dp, --ep.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "latte/options.h"

#include "src/engine/link/rank_world.h"

namespace latte {

// The environment variable by which a server gives its ranks the address that they join.
inline constexpr const char* kControlVariable = "LATTE_CONTROL";

// The number of processes.
int64_t RankCount(const EngineOptions& options);

// Whether a server has started this process, as a rank or as its engine.
bool StartedByServer();

// Whether this process prints notes on its command line: of several ranks, only rank 0 does, and
// none where a server, which has printed them, has started the ranks.
bool PrintsNotes();

// The command that starts so many ranks: mpirun, and this process's own words; for one, these
// alone.
std::vector<std::string> RankCommand(int64_t ranks);

// What to do where mpirun cannot be run, which is `why`.
Error NoLauncher(int64_t ranks, std::string_view why);

// The world of this process; null for --tp 1. Under mpirun or srun, its ranks; otherwise the
// process becomes mpirun and starts them, with the same command line, and this function does not
// return. The ranks of one machine divide its processors (local_ranks.h): the calling thread is
// bound to its memory nodes, and options.threads, if it is 0, is the number of them.
// Errors: kInvalidArgument if --tp is not the number of ranks that were started; kUnsupported
// without MPI, with what to install.
[[nodiscard]] Result<std::unique_ptr<RankWorld>> JoinRanks(EngineOptions& options);

// Follows the leader until it ends. Errors: as OpenModel; kUnavailable if a rank is lost.
[[nodiscard]] Status FollowLeader(RankWorld& world);

// The share of a process: the whole, if it is alone.
inline RankShare ShareOf(const RankWorld* world) {
  return world == nullptr ? RankShare() : world->share();
}
inline Followers* FollowersOf(RankWorld* world) {
  return world == nullptr ? nullptr : &world->followers();
}

}  // namespace latte

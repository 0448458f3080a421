#include "apps/rank_front.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "apps/ranks.h"
#include "apps/tell.h"
#include "src/comm/control/secret.h"
#include "src/comm/launch/processes.h"
#include "src/engine/link/remote_engine.h"

namespace latte {
namespace {

// Not flags: the words of a process can be read by every user of the machine, its environment
// cannot.
constexpr const char* kSecret = "LATTE_CONTROL_SECRET";

// Ranks of one world have the same words.
std::string WordsDigest(int64_t ranks) {
  return Digest(fmt::format("{}", fmt::join(RankCommand(ranks), "\n")));
}

// The rank that is lost is named by the front; without one, this is the only message.
void EndAtOnce(const RankLost& lost) {
  if (lost.rank() == RankLost::kUnknown) TellLine(fmt::format("latte: {}", lost.what()));
  _exit(ExitCode(Code::kUnavailable));
}

}  // namespace

Result<std::unique_ptr<Engine>> StartRanksOf(const EngineOptions& options, const ModelFiles& files,
                                             double step_timeout, const std::stop_token& stop) {
  const int64_t ranks = RankCount(options);
  const RankStarter start =
      [&](const FrontAddress& front) -> Result<std::unique_ptr<RankProcesses>> {
    auto started = ChildProcesses::Start(RankCommand(ranks),
                                         {fmt::format("{}={}", kControlVariable, front.address),
                                          fmt::format("{}={}", kSecret, front.secret)},
                                         front.inherited);
    if (!started && ranks == 1) return tl::unexpected(started.error());
    if (!started) return tl::unexpected(NoLauncher(ranks, started.error().message));
    return std::move(*started);
  };
  return RemoteEngine::Start({.ranks = static_cast<int>(ranks),
                              .config_hash = WordsDigest(ranks),
                              .step_timeout = step_timeout},
                             files, start, stop);
}

Result<std::unique_ptr<FrontLink>> JoinFront(RankWorld* world) {
  const char* const address = std::getenv(kControlVariable);
  const char* const secret = std::getenv(kSecret);
  if (address == nullptr || secret == nullptr) return nullptr;
  const int rank = world == nullptr ? 0 : world->world().rank();
  const int ranks = world == nullptr ? 1 : world->world().size();
  LATTE_ASSIGN_OR_RETURN(
      std::unique_ptr<FrontLink> link,
      FrontLink::Join({address, secret, WordsDigest(ranks)}, rank, ranks, EndAtOnce));
  if (world != nullptr)
    world->OnLoadError([at = link.get()](const Error& error) { at->Fail(error); });
  return link;
}

}  // namespace latte

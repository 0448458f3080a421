#include "apps/ranks.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "src/checkpoint/model_files.h"
#include "src/checkpoint/model_path.h"
#include "src/comm/local_ranks.h"
#include "src/comm/mpi/mpi.h"
#include "src/comm/mpi/mpirun.h"
#include "src/models/registry.h"

namespace latte {
namespace {

std::vector<std::string> OwnWords() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size(); begin = text.find('\0', begin) + 1)
    words.push_back(text.substr(begin, text.find('\0', begin) - begin));
  return words;
}

std::string OwnPath() {
  std::vector<char> path(4096);
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  return {path.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

// Becomes mpirun. Returns only if that fails.
Status StartRanks(int64_t ranks) {
  std::vector<std::string> words = RankCommand(ranks);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv.front(), argv.data());
  return tl::unexpected(NoLauncher(ranks, std::strerror(errno)));
}

// Of `all` ranks, those on this machine, as mpirun and srun tell; all if they do not.
int64_t LocalRanks(int64_t all) {
  for (const char* name :
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"})
    if (const char* value = std::getenv(name)) return std::clamp<int64_t>(std::atol(value), 1, all);
  return all;
}

}  // namespace

bool StartedByServer() { return std::getenv(kControlVariable) != nullptr; }

bool PrintsNotes() {
  if (StartedByServer()) return false;
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    if (const char* rank = std::getenv(name)) return std::string_view(rank) == "0";
  return true;
}

int64_t RankCount(const EngineOptions& options) { return std::max(options.tp, options.dp); }

std::vector<std::string> RankCommand(int64_t ranks) {
  std::vector<std::string> words;
  if (ranks > 1) words = MpirunWords(ranks, geteuid() == 0);
  words.push_back(OwnPath());
  const std::vector<std::string> own = OwnWords();
  words.insert(words.end(), own.begin() + 1, own.end());
  return words;
}

Error NoLauncher(int64_t ranks, std::string_view why) {
  return {Code::kUnsupported,
          fmt::format("--tp {}: expected mpirun, which starts the ranks: {}; install openmpi-bin",
                      ranks, why)};
}

Result<std::unique_ptr<RankWorld>> JoinRanks(EngineOptions& options) {
  options.tp = RankCount(options);
  if (options.tp == 1) return nullptr;  // under mpirun too: then each process is on its own
  if (!StartedByMpi()) return tl::unexpected(StartRanks(options.tp).error());
  LATTE_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> world, ConnectMpi({}));
  if (world->size() != options.tp)
    return InvalidArgument(
        fmt::format("--tp: expected {}, the number of ranks that were started, found {}",
                    world->size(), options.tp));
  try {
    const int threads = TakePartOfProcessors(*world);
    if (options.threads == 0) options.threads = threads;
    return RankWorld::Create(std::move(world), {.groups = options.dp,
                                                .whole_experts = options.ep > 1,
                                                .cache_ranks = options.dcp,
                                                .on_this_machine = LocalRanks(options.tp)});
  } catch (const RankLost& lost) {
    return Fail(Code::kUnavailable, lost.what());
  }
}

Status FollowLeader(RankWorld& world) {
  LATTE_ASSIGN_OR_RETURN(const Machine machine, Machine::Detect());
  RankWorld::Loaders load;
  load.share = [](const std::string& name,
                  const ModelOptions& options) -> Result<std::unique_ptr<Model>> {
    LATTE_ASSIGN_OR_RETURN(const std::string dir, ResolveModelPath(name));
    return LoadModel(dir, options);
  };
  load.tokenizer = [](const std::string& name) -> Result<Tokenizer> {
    LATTE_ASSIGN_OR_RETURN(const std::string dir, ResolveModelPath(name));
    return LoadTokenizer(dir);
  };
  return world.Follow(machine, load);
}

}  // namespace latte

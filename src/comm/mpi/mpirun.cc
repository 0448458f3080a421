#include "src/comm/mpi/mpirun.h"

namespace latte {

std::vector<std::string> MpirunWords(int64_t ranks, bool as_root) {
  std::vector<std::string> words = {"mpirun"};
  if (as_root) words.emplace_back("--allow-run-as-root");
  // More ranks than processors may be meant: then one that waits leaves its processor to others.
  for (const char* word :
       {"--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", "-n"})
    words.emplace_back(word);
  words.push_back(std::to_string(ranks));
  return words;
}

}  // namespace latte

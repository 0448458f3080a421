// The command that starts the ranks of this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace latte {

// mpirun and its flags; the program and its words follow. It binds no rank: ranks divide the
// processors themselves (local_ranks.h). as_root: this process runs as root, which mpirun has to be
// told.
std::vector<std::string> MpirunWords(int64_t ranks, bool as_root);

}  // namespace latte

// Ranks as processes that mpirun or srun has started, over MPI. Latte is not linked with MPI: a
// module, liblatte_mpi.so, is loaded by the first call. It is built where MPI's headers are found and
// lies with the program, or with liblatte, or in the library folder of the same installation.
//
// Only messages of MPI are used, not its collectives (exchange.h), and MPI is never relied on to
// notice that a rank has died: the deadline and Abandon are ours.
#pragma once

#include <filesystem>
#include <memory>

#include "latte/status.h"

#include "src/comm/communicator.h"

namespace latte {

// Whether mpirun (Open MPI, MPICH) or srun --mpi=pmix has started this process.
bool StartedByMpi();

// The world of the ranks that were started together; one rank if this process was started alone.
// Once per process. module: file to load; empty: as above.
// The result ends MPI when it and its parts are gone, unless a rank was lost: then memory of the
// last collective may still be in use, and the process has to end by _exit.
// Errors: kUnsupported, no module, or it cannot be loaded; the message says what to install.
// kUnavailable: MPI does not start.
Result<std::unique_ptr<Communicator>> ConnectMpi(const CommOptions& options,
                                                 const std::filesystem::path& module = {});

}  // namespace latte

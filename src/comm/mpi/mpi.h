// Ranks as processes of mpirun or srun, over MPI. Latte is not linked with MPI: the first call
// loads the module liblatte_mpi.so. It is built if MPI's headers are installed, and is next to the
// program, next to liblatte, or in the library folder of the same installation.
//
// Latte uses only messages of MPI, not its collectives (exchange.h). It does not rely on MPI to
// detect a dead rank: it has its own deadline and Abandon.
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

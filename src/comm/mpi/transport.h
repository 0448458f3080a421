// Messages over MPI.
#pragma once

#include <memory>

#include "latte/status.h"

#include "src/comm/transport.h"

struct latte_mpi_api;

namespace latte {

// Errors: kUnavailable. mpi: outlives the result.
Result<std::unique_ptr<Transport>> StartMpi(const latte_mpi_api& mpi);

}  // namespace latte

/* A module of another version of the interface, for mpi_test.cc. */
#include <stddef.h>

#include "src/comm/mpi/api.h"

latte_mpi_version_function latte_mpi_version;
latte_mpi_functions_function latte_mpi_functions;

int latte_mpi_version(void) { return LATTE_MPI_API_VERSION - 1; }

const struct latte_mpi_api* latte_mpi_functions(void) { return NULL; }

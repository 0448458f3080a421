/* liblatte_mpi.so: the only file that includes mpi.h. It is built where the C headers of MPI are
 * found. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "src/comm/mpi/api.h"

_Static_assert(sizeof(MPI_Request) <= sizeof(struct latte_mpi_request), "no room for a request");

static MPI_Comm ranks = MPI_COMM_NULL;

static MPI_Request Load(const struct latte_mpi_request* request) {
  MPI_Request out;
  memcpy(&out, &request->value, sizeof out);
  return out;
}

static void Store(MPI_Request in, struct latte_mpi_request* request) {
  memcpy(&request->value, &in, sizeof in);
}

/* The largest tag is an attribute of MPI_COMM_WORLD. */
static int MaxTag(int* max_tag) {
  int* value = NULL;
  int found = 0;
  const int error = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found);
  *max_tag = found ? *value : 32767; /* what the standard promises */
  return error;
}

static int Start(int* rank, int* size, int* max_tag) {
  int started = 0;
  int error = MPI_Initialized(&started);
  if (error == MPI_SUCCESS && !started) {
    int provided = MPI_THREAD_SINGLE;
    error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    if (error == MPI_SUCCESS && provided < MPI_THREAD_SERIALIZED) return MPI_ERR_OTHER;
  }
  if (error == MPI_SUCCESS) error = MPI_Comm_dup(MPI_COMM_WORLD, &ranks);
  if (error == MPI_SUCCESS) error = MPI_Comm_set_errhandler(ranks, MPI_ERRORS_RETURN);
  if (error == MPI_SUCCESS) error = MPI_Comm_rank(ranks, rank);
  if (error == MPI_SUCCESS) error = MPI_Comm_size(ranks, size);
  return error == MPI_SUCCESS ? MaxTag(max_tag) : error;
}

static int Send(const void* data, int bytes, int to, int tag, struct latte_mpi_request* request) {
  MPI_Request out = MPI_REQUEST_NULL;
  const int error = MPI_Isend(data, bytes, MPI_BYTE, to, tag, ranks, &out);
  Store(out, request);
  return error;
}

static int Receive(void* data, int bytes, int from, int tag, struct latte_mpi_request* request) {
  MPI_Request in = MPI_REQUEST_NULL;
  const int error = MPI_Irecv(data, bytes, MPI_BYTE, from, tag, ranks, &in);
  Store(in, request);
  return error;
}

static int Test(struct latte_mpi_request* request, int* done, int* bytes) {
  MPI_Request tested = Load(request);
  MPI_Status status;
  memset(&status, 0, sizeof status);
  int error = MPI_Test(&tested, done, &status);
  Store(tested, request);
  if (error == MPI_SUCCESS && *done) error = MPI_Get_count(&status, MPI_BYTE, bytes);
  return error;
}

static void Cancel(struct latte_mpi_request* request) {
  MPI_Request given_up = Load(request);
  if (given_up == MPI_REQUEST_NULL) return;
  MPI_Cancel(&given_up);
  MPI_Request_free(&given_up);
}

static int Finish(void) {
  const int error = MPI_Comm_free(&ranks);
  return error == MPI_SUCCESS ? MPI_Finalize() : error;
}

static void Describe(int error, char* text, int size) {
  char all[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, all, &length);
  snprintf(text, (size_t)size, "%s", all);
}

__attribute__((visibility("default"))) latte_mpi_version_function latte_mpi_version;
__attribute__((visibility("default"))) latte_mpi_functions_function latte_mpi_functions;

int latte_mpi_version(void) { return LATTE_MPI_API_VERSION; }

const struct latte_mpi_api* latte_mpi_functions(void) {
  static const struct latte_mpi_api functions = {
      .start = Start,
      .send = Send,
      .receive = Receive,
      .test = Test,
      .cancel = Cancel,
      .finish = Finish,
      .describe = Describe,
  };
  return &functions;
}

/* Calls of MPI that liblatte_mpi.so makes for Latte, in C: neither side sees the other's headers or
 * C++ library.
 * The module is loaded at run time, so a program without MPI needs none of its libraries. */
#ifndef LATTE_MPI_API_H
#define LATTE_MPI_API_H

/* Increased by every change of this file. A module of another version is refused. */
#define LATTE_MPI_API_VERSION 1

/* Room for an MPI_Request, which is a pointer or a number. */
struct latte_mpi_request {
  void* value;
};

/* Functions return 0 or an error code of MPI. They may be called by any thread, one at a time. */
struct latte_mpi_api {
  /* Starts MPI, once per process, on its own communicator. max_tag: the largest tag. */
  int (*start)(int* rank, int* size, int* max_tag);
  /* Neither waits. The memory is in use until `test` says that the request is done. */
  int (*send)(const void* data, int bytes, int to, int tag, struct latte_mpi_request* request);
  int (*receive)(void* data, int bytes, int from, int tag, struct latte_mpi_request* request);
  /* Moves all messages on. done: 0 or 1, then the request is freed; bytes: length of the received
   * message. A longer message than `receive` allows is an error. */
  int (*test)(struct latte_mpi_request* request, int* done, int* bytes);
  /* Gives the request up; a message on its way may still use its memory. */
  void (*cancel)(struct latte_mpi_request* request);
  /* Ends MPI; every rank calls it, and it may wait for all of them. */
  int (*finish)(void);
  /* Text of an error code, ended by 0. */
  void (*describe)(int error, char* text, int size);
};

/* The module exports these. */
typedef int latte_mpi_version_function(void);
typedef const struct latte_mpi_api* latte_mpi_functions_function(void);
#define LATTE_MPI_VERSION_SYMBOL "latte_mpi_version"
#define LATTE_MPI_FUNCTIONS_SYMBOL "latte_mpi_functions"

#endif

/* Preloaded into a program, it lets the first FEW_THREADS calls of pthread_create pass and fails
   the others as a system does that has no more threads to give. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef int (*Create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  static atomic_long calls;
  const char* most = getenv("FEW_THREADS");
  if (most != NULL && atomic_fetch_add(&calls, 1) >= atol(most)) return EAGAIN;
  /* POSIX has functions in pointers to objects here; a union says so without a cast. */
  union {
    void* object;
    Create function;
  } next;
  next.object = dlsym(RTLD_NEXT, "pthread_create");
  return next.function(thread, attributes, start, argument);
}

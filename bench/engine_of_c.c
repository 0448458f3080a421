// Eight greedy answers from one engine, driven from C: the baseline of python_overhead.py.
// Usage: engine_of_c MODEL RUNS TOKENS; TOKENS: of each answer. Prints the seconds of each run, and
// the seconds that its processor worked.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "latte/latte.h"

enum { kSequences = 8 };

static double Now(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void CountEnds(void* context, const latte_event* const* events, size_t count) {
  for (size_t i = 0; i < count; ++i) *(int*)context += events[i]->finish != LATTE_FINISH_NONE;
}

int main(int argc, char** argv) {
  latte_engine_options options;
  latte_engine* engine;
  int ended = 0;
  latte_engine_options_init(&options, sizeof options);
  options.model = argc > 1 ? argv[1] : "tiny";
  options.draft_tokens = "0";
  options.cache_bytes = 256 << 20;
  options.threads = 1;
  if (latte_engine_create(&options, &engine, NULL) != LATTE_OK) return 1;
  latte_engine_set_event_sink(engine, CountEnds, &ended, NULL);
  for (int run = 0; run < (argc > 2 ? atoi(argv[2]) : 1); ++run) {
    const double begun = Now(CLOCK_MONOTONIC), used = Now(CLOCK_PROCESS_CPUTIME_ID);
    ended = 0;
    for (int32_t i = 0; i < kSequences; ++i) {
      const int32_t prompt[] = {5 + i, 6, 7};
      latte_request request;
      latte_request_id id;
      latte_request_init(&request, sizeof request);
      request.tokens = prompt, request.token_count = 3;
      request.max_tokens = argc > 3 ? atoi(argv[3]) : 256, request.ignore_eos = 1;
      if (latte_engine_submit(engine, &request, &id, NULL) != LATTE_OK) return 1;
    }
    while (ended < kSequences)
      if (latte_engine_step(engine, NULL) != LATTE_OK) return 1;
    printf("%.6f %.6f\n", Now(CLOCK_MONOTONIC) - begun, Now(CLOCK_PROCESS_CPUTIME_ID) - used);
  }
  latte_engine_destroy(engine);
  return 0;
}

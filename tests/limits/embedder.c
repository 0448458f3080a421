/* A program that embeds liblatte, as an embedder writes one: it asks for answers until they are all
   there or it is told why not. Exit codes: 0 answered, 1 told of a lack of memory, 2 told anything
   else. Usage: embedder MODEL PROMPT_TOKENS THREADS */
#include <latte/latte.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRequests = 3 };

typedef struct Seen {
  int finished;
  latte_code code; /* of the last answer that ended in an error */
} Seen;

static void Collect(void* context, const latte_event* const* events, size_t count) {
  Seen* seen = context;
  for (size_t i = 0; i < count; ++i) {
    if (events[i]->finish == LATTE_FINISH_NONE) continue;
    ++seen->finished;
    if (events[i]->finish == LATTE_FINISH_ERROR) seen->code = events[i]->error_code;
  }
}

static int Told(latte_code code, const char* message) {
  if (code == LATTE_OK) return 0;
  fprintf(stderr, "latte: %s: %s\n", latte_code_name(code), message);
  return code == LATTE_EXHAUSTED ? 1 : 2;
}

static latte_code Ask(latte_engine* engine, int32_t* tokens, size_t count, latte_error* error) {
  for (int i = 0; i < kRequests; ++i) {
    latte_request request;
    latte_request_id id;
    latte_request_init(&request, sizeof request);
    request.tokens = tokens;
    request.token_count = count >> i; /* a long prompt, and shorter ones */
    request.max_tokens = 4;
    const latte_code code = latte_engine_submit(engine, &request, &id, error);
    if (code != LATTE_OK) return code;
  }
  return LATTE_OK;
}

/* The system grows the stack of the main thread page by page; where address space is short it must
 * be large before. */
static void TouchStack(void) {
  volatile char stack[128 << 10];
  for (size_t i = 0; i < sizeof stack; i += 1024) stack[i] = 0;
  (void)stack[0];
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  TouchStack();
  const size_t count = (size_t)atol(argv[2]);
  latte_error error = {.size = sizeof error};
  latte_engine_options options;
  latte_engine* engine = NULL;
  latte_engine_options_init(&options, sizeof options);
  options.model = argv[1];
  options.threads = atoi(argv[3]);
  options.cache_bytes = 1 << 24;
  options.max_batch_tokens = 4096;
  latte_code code = latte_engine_create(&options, &engine, &error);
  if (code != LATTE_OK) return Told(code, error.message);
  int32_t* tokens = malloc(count * sizeof *tokens);
  Seen seen = {0, LATTE_OK};
  if (tokens == NULL) code = LATTE_EXHAUSTED;
  for (size_t i = 0; tokens != NULL && i < count; ++i) tokens[i] = (int32_t)(i * 37 % 1000);
  if (code == LATTE_OK) code = latte_engine_set_event_sink(engine, Collect, &seen, &error);
  if (code == LATTE_OK) code = Ask(engine, tokens, count, &error);
  while (code == LATTE_OK && seen.finished < kRequests) code = latte_engine_step(engine, &error);
  latte_engine_destroy(engine);
  free(tokens);
  if (code != LATTE_OK) return Told(code, error.message);
  return Told(seen.code, "an answer ended so");
}

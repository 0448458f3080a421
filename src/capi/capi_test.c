// The C API as a C program sees it, over the model "tiny".
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "latte/latte.h"

static int failures = 0;

static void Expect(bool held, const char* what) {
  if (held) return;
  fprintf(stderr, "FAILED: %s\n", what);
  ++failures;
}

// The events that the sink got since Clear.
typedef struct Seen {
  latte_engine* engine;
  char text[4096];
  size_t bytes;
  int tokens;
  int logprobs;
  int prompt_logprobs;
  int finished;
  int cancelled;
  int failed;
  bool cancel_at_once;
  bool well_formed;
  uint64_t user_data;  // of the last event
} Seen;

static bool WellFormed(const latte_event* event) {
  return event->size == sizeof(latte_event) && event->text.data != NULL &&
         event->text.data[event->text.bytes] == '\0' && event->error_message != NULL &&
         (event->finish == LATTE_FINISH_ERROR) == (event->error_code != LATTE_OK);
}

static void Collect(void* context, const latte_event* const* events, size_t count) {
  Seen* seen = context;
  for (size_t i = 0; i < count; ++i) {
    const latte_event* event = events[i];
    seen->well_formed = seen->well_formed && WellFormed(event);
    if (seen->bytes + event->text.bytes < sizeof seen->text) {
      memcpy(seen->text + seen->bytes, event->text.data, event->text.bytes);
      seen->bytes += event->text.bytes;
    }
    seen->tokens += event->token >= 0;
    seen->user_data = event->user_data;
    if (event->logprobs != NULL) seen->logprobs += (int)event->logprobs->top_count;
    for (size_t t = 0; t < event->prompt_logprob_count; ++t)
      seen->prompt_logprobs += event->prompt_logprobs[t].chosen.logprob <= 0;
    seen->finished += event->finish != LATTE_FINISH_NONE;
    seen->cancelled += event->finish == LATTE_FINISH_CANCELLED;
    seen->failed += event->finish == LATTE_FINISH_ERROR;
    if (seen->cancel_at_once) latte_engine_cancel(seen->engine, event->request, NULL);
  }
}

static void Clear(Seen* seen) {
  latte_engine* engine = seen->engine;
  memset(seen, 0, sizeof *seen);
  seen->engine = engine;
  seen->well_formed = true;
}

static latte_request Prompt(const char* text, int64_t max_tokens) {
  latte_request request;
  Expect(latte_request_init(&request, sizeof request) == LATTE_OK, "request_init");
  request.prompt.data = text;
  request.max_tokens = max_tokens;
  return request;
}

static void StepUntil(latte_engine* engine, const Seen* seen, int finished) {
  latte_error error = {.size = sizeof error};
  for (int step = 0; step < 10000 && seen->finished < finished; ++step)
    Expect(latte_engine_step(engine, &error) == LATTE_OK && error.code == LATTE_OK, "step");
  Expect(seen->finished == finished, "all answers end");
}

static void TestNames(void) {
  Expect(strchr(latte_version(), '.') != NULL, "version");
  Expect(strcmp(latte_code_name(LATTE_CORRUPT), "corrupt") == 0, "code name");
  Expect(strcmp(latte_code_name(-1), "unknown") == 0, "no code");
  Expect(strcmp(latte_code_name(9), "unknown") == 0, "no code either");
  Expect(strcmp(latte_finish_name(LATTE_FINISH_NONE), "none") == 0, "no finish");
  Expect(strcmp(latte_finish_name(LATTE_FINISH_STOP), "stop") == 0, "finish name");
  Expect(strcmp(latte_finish_name(INT32_MAX), "unknown") == 0, "no finish name");
}

static void TestSizes(latte_engine* engine) {
  latte_error error = {.size = sizeof error};
  latte_request_id id;
  latte_request request = Prompt("a", 1);
  // Up to `echo` went the first version; shorter ones never were.
  const size_t bad[] = {0, 1, 8, offsetof(latte_request, keep_special) - 1, 5000, SIZE_MAX};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    request.size = bad[i];
    Expect(latte_engine_submit(engine, &request, &id, &error) == LATTE_INVALID_ARGUMENT &&
               strstr(error.message, "sizeof(latte_request)") != NULL,
           "a bad size of a request is named");
    Expect(latte_request_init(&request, bad[i]) == LATTE_INVALID_ARGUMENT, "init with a bad size");
  }
  latte_stats stats = {.size = 3};
  Expect(latte_engine_stats(engine, &stats, &error) == LATTE_INVALID_ARGUMENT, "size of stats");
  latte_engine_options options = {.size = 3};
  Expect(latte_engine_settled_options(engine, &options, &error) == LATTE_INVALID_ARGUMENT,
         "size of options");
  Expect(latte_engine_create(&options, &engine, &error) == LATTE_INVALID_ARGUMENT,
         "create with a bad size");
  latte_error small = {.size = 8, .code = 77};
  stats.size = sizeof stats;
  Expect(latte_engine_step(NULL, &small) == LATTE_INVALID_ARGUMENT && small.code == 77,
         "an error of a bad size is left alone");
}

static void TestNulls(latte_engine* engine) {
  latte_error error = {.size = sizeof error};
  latte_request request = Prompt("a", 1);
  latte_request_id id;
  latte_stats stats = {.size = sizeof stats};
  latte_engine_options options;
  int32_t work;
  const latte_code bad = LATTE_INVALID_ARGUMENT;
  Expect(latte_request_init(NULL, sizeof request) == bad, "init of no request");
  Expect(latte_engine_options_init(NULL, sizeof options) == bad, "init of no options");
  Expect(latte_engine_create(NULL, NULL, &error) == bad, "create into nothing");
  Expect(latte_engine_submit(NULL, &request, &id, &error) == bad, "submit to no engine");
  Expect(strstr(error.message, "engine") != NULL, "what is NULL is named");
  Expect(latte_engine_submit(engine, NULL, &id, &error) == bad, "submit nothing");
  Expect(latte_engine_submit(engine, &request, NULL, &error) == bad, "submit without an id");
  Expect(latte_engine_cancel(NULL, 1, &error) == bad, "cancel");
  Expect(latte_engine_set_event_sink(NULL, Collect, NULL, &error) == bad, "set_event_sink");
  Expect(latte_engine_step(NULL, &error) == bad, "step");
  Expect(latte_engine_wait_for_work(NULL, 0, &work, &error) == bad, "wait");
  Expect(latte_engine_wait_for_work(engine, 0, NULL, &error) == bad, "wait into nothing");
  Expect(latte_engine_wake(NULL, &error) == bad, "wake");
  Expect(latte_engine_save_prefixes(NULL, &error) == bad, "save_prefixes");
  Expect(latte_engine_stats(NULL, &stats, &error) == bad, "stats");
  Expect(latte_engine_stats(engine, NULL, &error) == bad, "stats into nothing");
  Expect(latte_engine_settled_options(engine, NULL, &error) == bad, "options into nothing");
  Expect(latte_engine_settled_options(NULL, &options, &error) == bad, "options");
  Expect(latte_engine_step(NULL, NULL) == bad, "errors without text");
  latte_engine_destroy(NULL);
}

static void ExpectRefused(latte_engine* engine, const latte_request* request, const char* what) {
  latte_error error = {.size = sizeof error};
  latte_request_id id = 0;
  const latte_code code = latte_engine_submit(engine, request, &id, &error);
  Expect(code == LATTE_INVALID_ARGUMENT && error.code == code && error.message[0] != '\0', what);
}

static void TestBadValues(latte_engine* engine) {
  const int32_t no_token = INT32_MAX;
  latte_request r = Prompt("a", -1);
  ExpectRefused(engine, &r, "max_tokens");
  r = Prompt("a", 1), r.temperature = NAN;
  ExpectRefused(engine, &r, "temperature");
  r = Prompt("a", 1), r.top_p = 0;
  ExpectRefused(engine, &r, "top_p");
  r = Prompt("a", 1), r.n = 0;
  ExpectRefused(engine, &r, "n");
  r = Prompt("a", 1), r.n = INT32_MAX;
  ExpectRefused(engine, &r, "huge n");
  r = Prompt("a", 1), r.logprobs = 21;
  ExpectRefused(engine, &r, "logprobs");
  r = Prompt("a", 1), r.echo = 2;
  ExpectRefused(engine, &r, "echo");
  r = Prompt("a", 1), r.tokens = &no_token, r.token_count = 1;
  ExpectRefused(engine, &r, "a token outside the vocabulary");
  r = Prompt("a", 1), r.stop_string_count = 1;
  ExpectRefused(engine, &r, "a length without an array");
  r = Prompt("a", 1), r.prompt.bytes = SIZE_MAX - 1;
  ExpectRefused(engine, &r, "a text longer than memory");
  memset(&r, 0, sizeof r), r.size = sizeof r;
  ExpectRefused(engine, &r, "zeros without init");
  memset(&r, 0xFF, sizeof r), r.size = sizeof r;
  r.prompt.data = r.cache_salt.data = NULL;  // an address cannot be checked
  ExpectRefused(engine, &r, "no values at all");
  int32_t work;
  latte_error error = {.size = sizeof error};
  Expect(latte_engine_wait_for_work(engine, -1, &work, &error) == LATTE_INVALID_ARGUMENT,
         "a negative timeout");
}

static void TestOptions(void) {
  latte_error error = {.size = sizeof error};
  latte_engine* engine = (latte_engine*)&error;
  latte_engine_options options;
  Expect(latte_engine_options_init(&options, sizeof options) == LATTE_OK, "options_init");
  Expect(strcmp(options.model, "tiny") == 0 && options.page_tokens == 64, "defaults");
  options.model = "no/such/model";
  Expect(latte_engine_create(&options, &engine, &error) == LATTE_NOT_FOUND && engine == NULL &&
             error.code == LATTE_NOT_FOUND && strstr(error.message, "no/such/model") != NULL,
         "a model that does not exist is named");
  latte_engine_options_init(&options, sizeof options);
  options.page_tokens = 3;
  Expect(latte_engine_create(&options, &engine, &error) == LATTE_INVALID_ARGUMENT &&
             strstr(error.message, "page-tokens") != NULL,
         "a bad option is named");
  options.page_tokens = 64, options.prefix_cache = 7;
  Expect(latte_engine_create(&options, &engine, NULL) == LATTE_INVALID_ARGUMENT, "a bad flag");
}

// A message longer than its place is cut between code points.
static void TestLongMessages(void) {
  latte_error error = {.size = sizeof error};
  char model[4001];
  for (int i = 0; i < 4000; i += 2) memcpy(model + i, "\xC3\xA9", 2);
  model[4000] = '\0';
  for (int shift = 0; shift < 2; ++shift) {
    latte_engine_options options;
    latte_engine* engine;
    latte_engine_options_init(&options, sizeof options);
    options.model = model;
    model[0] = shift == 0 ? '\xC3' : 'x', model[1] = shift == 0 ? '\xA9' : 'y';
    if (shift == 1) memmove(model + 1, model + 2, 3999);
    Expect(latte_engine_create(&options, &engine, &error) == LATTE_NOT_FOUND, "no such model");
    const size_t bytes = strlen(error.message);
    Expect(bytes >= sizeof error.message - 3 && bytes < sizeof error.message, "filled, ended");
    Expect((unsigned char)error.message[bytes - 1] == 0xA9, "cut between code points");
  }
}

static void TestAnswers(Seen* seen) {
  latte_engine* engine = seen->engine;
  latte_error error = {.size = sizeof error};
  latte_request_id id = 0;
  Clear(seen);
  latte_request request = Prompt("Once upon a time", 12);
  request.n = 2, request.logprobs = 3, request.prompt_logprobs = 0, request.ignore_eos = 1;
  const latte_text stop = {"never \x01 made", SIZE_MAX};
  const latte_logit_bias bias = {5, -100};
  request.stop_strings = &stop, request.stop_string_count = 1;
  request.logit_bias = &bias, request.logit_bias_count = 1;
  Expect(latte_engine_submit(engine, &request, &id, &error) == LATTE_OK && id != 0, "submit");
  int32_t work = 0;
  Expect(latte_engine_wait_for_work(engine, INT64_MAX, &work, &error) == LATTE_OK && work == 1,
         "work waits");
  StepUntil(engine, seen, 2);
  Expect(seen->tokens == 24 && seen->bytes > 0, "both answers have their tokens and text");
  Expect(seen->logprobs == 72, "three alternatives with each of 24 tokens");
  Expect(seen->prompt_logprobs > 0, "the prompt's logprobs");
  Expect(seen->failed == 0 && seen->well_formed, "events are well formed");
  for (int step = 0; step < 3 && work == 1; ++step) {  // the last step's pages are put away
    Expect(latte_engine_step(engine, &error) == LATTE_OK, "step");
    Expect(latte_engine_wait_for_work(engine, 1, &work, &error) == LATTE_OK, "wait");
  }
  Expect(work == 0, "no work");
}

static void TestTokens(Seen* seen) {
  latte_request_id id;
  const int32_t tokens[] = {5, 6, 7};
  Clear(seen);
  latte_request request = Prompt(NULL, 3);
  request.tokens = tokens, request.token_count = 3, request.ignore_eos = 1;
  Expect(latte_engine_submit(seen->engine, &request, &id, NULL) == LATTE_OK, "submit of tokens");
  request.user_data = UINT64_MAX - 1;
  Expect(latte_engine_submit(seen->engine, &request, &id, NULL) == LATTE_OK, "submit of user data");
  StepUntil(seen->engine, seen, 2);
  Expect(seen->tokens == 6 && seen->user_data == UINT64_MAX - 1, "prompts of tokens are answered");
  // A program of the version before user_data.
  request.size = offsetof(latte_request, user_data);
  Expect(latte_engine_submit(seen->engine, &request, &id, NULL) == LATTE_OK, "a shorter request");
  StepUntil(seen->engine, seen, 3);
  Expect(seen->user_data == 0, "user data that is not given is 0");
}

// From the sink, after the first event; and before the first step.
static void TestCancel(Seen* seen) {
  latte_engine* engine = seen->engine;
  latte_request_id id;
  Clear(seen);
  latte_request request = Prompt("Once upon a time", 1000);
  request.ignore_eos = 1;
  seen->cancel_at_once = true;
  Expect(latte_engine_submit(engine, &request, &id, NULL) == LATTE_OK, "submit");
  StepUntil(engine, seen, 1);
  Expect(seen->cancelled == 1 && seen->tokens < 1000, "cancelled from the sink");
  Clear(seen);
  Expect(latte_engine_submit(engine, &request, &id, NULL) == LATTE_OK, "submit");
  Expect(latte_engine_cancel(engine, id, NULL) == LATTE_OK, "cancel");
  StepUntil(engine, seen, 1);
  Expect(seen->cancelled == 1 && seen->tokens == 0, "cancelled before it began");
  Expect(latte_engine_cancel(engine, UINT64_MAX, NULL) == LATTE_OK, "an unknown id is no error");
}

static void TestStats(latte_engine* engine) {
  latte_error error = {.size = sizeof error};
  latte_stats stats = {.size = sizeof stats};
  Expect(latte_engine_stats(engine, &stats, &error) == LATTE_OK, "stats");
  Expect(stats.size == sizeof stats && stats.waiting == 0 && stats.running == 0, "nothing is left");
  Expect(stats.requests_finished == 7 && stats.requests_cancelled == 2, "answers are counted");
  Expect(stats.steps > 0 && stats.page_tokens == 64 && stats.pages_total > 0, "steps and pages");
  latte_engine_options options = {.size = sizeof options};
  Expect(latte_engine_settled_options(engine, &options, &error) == LATTE_OK, "settled options");
  Expect(strcmp(options.model, "tiny") == 0 && options.max_tokens > 0, "resolved options");
}

static void TestQueueLimit(void) {
  latte_error error = {.size = sizeof error};
  latte_engine_options options;
  latte_engine* engine;
  latte_request_id id;
  latte_engine_options_init(&options, sizeof options);
  options.max_queued_requests = 1, options.max_sequences = 1;
  Expect(latte_engine_create(&options, &engine, &error) == LATTE_OK, "a small queue");
  const latte_request request = Prompt("a", 1);
  latte_code code = LATTE_OK;
  for (int i = 0; i < 4 && code == LATTE_OK; ++i)
    code = latte_engine_submit(engine, &request, &id, &error);
  Expect(code == LATTE_EXHAUSTED && error.message[0] != '\0', "the queue is full");
  latte_engine_destroy(engine);  // with work left
}

int main(void) {
  latte_error error = {.size = sizeof error};
  Seen* seen = calloc(1, sizeof *seen);
  if (latte_engine_create(NULL, &seen->engine, &error) != LATTE_OK) {
    fprintf(stderr, "create: %s: %s\n", latte_code_name(error.code), error.message);
    return 1;
  }
  Expect(latte_engine_set_event_sink(seen->engine, Collect, seen, &error) == LATTE_OK, "sink");
  TestNames();
  TestSizes(seen->engine);
  TestNulls(seen->engine);
  TestBadValues(seen->engine);
  TestOptions();
  TestLongMessages();
  TestAnswers(seen);
  TestTokens(seen);
  TestCancel(seen);
  TestStats(seen->engine);
  TestQueueLimit();
  latte_engine_destroy(seen->engine);
  free(seen);
  if (failures == 0) puts("the C API holds");
  return failures != 0;
}

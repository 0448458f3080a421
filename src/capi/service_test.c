// latte_service.h and latte_ops.h as a C program sees them.
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "latte/latte.h"

static int failures = 0;

static void Expect(bool condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "FAILED: %s\n", what);
  ++failures;
}

static latte_text Text(const char* text) {
  const latte_text out = {text, SIZE_MAX};
  return out;
}

static bool Named(const latte_error* error, latte_code code, const char* word) {
  return error->code == code && strstr(error->message, word) != NULL;
}

static void TestModel(void) {
  latte_error error = {.size = sizeof error};
  latte_model* model = (latte_model*)&error;
  Expect(latte_model_open("no/such", &model, &error) == LATTE_NOT_FOUND && model == NULL,
         "a model that does not exist");
  Expect(latte_model_open("tiny", &model, &error) == LATTE_OK, "open");
  int32_t tokens[64];
  size_t count = 0;
  Expect(latte_model_encode(model, Text("Once upon a time"), 1, 0, NULL, 0, &count, &error) ==
                 LATTE_OK &&
             count > 2,
         "the count that encode needs");
  const size_t needed = count;
  tokens[2] = -7;
  Expect(latte_model_encode(model, Text("Once upon a time"), 1, 0, tokens, 2, &count, &error) ==
                 LATTE_OK &&
             count == needed && tokens[2] == -7,
         "encode writes no more than the capacity");
  Expect(latte_model_encode(model, Text("Once upon a time"), 1, 0, tokens, 64, &count, &error) ==
             LATTE_OK,
         "encode");
  char text[256];
  size_t bytes = 0;
  Expect(
      latte_model_decode(model, tokens, count, 1, text, sizeof text, &bytes, &error) == LATTE_OK &&
          bytes == strlen("Once upon a time") && memcmp(text, "Once upon a time", bytes) == 0,
      "decode gives the text back");
  Expect(latte_model_encode(model, Text("a"), 2, 0, tokens, 64, &count, &error) ==
                 LATTE_INVALID_ARGUMENT &&
             Named(&error, LATTE_INVALID_ARGUMENT, "bos"),
         "a flag is named");
  tokens[0] = 1 << 30;
  Expect(latte_model_decode(model, tokens, 1, 0, text, sizeof text, &bytes, &error) ==
             LATTE_INVALID_ARGUMENT,
         "an id outside of the vocabulary");
  Expect(latte_model_decode(model, NULL, 1, 0, text, sizeof text, &bytes, &error) ==
                 LATTE_INVALID_ARGUMENT &&
             Named(&error, LATTE_INVALID_ARGUMENT, "tokens"),
         "no ids");
  Expect(latte_model_info(model, NULL, 0, &bytes, &error) == LATTE_OK && bytes > 100, "info");
  latte_request request;
  Expect(latte_model_request_init(model, &request, sizeof request, &error) == LATTE_OK &&
             request.size == sizeof request && request.max_tokens > 0 && request.n == 1,
         "request_init");
  Expect(latte_model_chat_prompt(model, Text("{"), tokens, 64, &count, &error) ==
             LATTE_INVALID_ARGUMENT,
         "a body that is no JSON");
  Expect(latte_model_encode(NULL, Text("a"), 0, 0, tokens, 64, &count, &error) ==
                 LATTE_INVALID_ARGUMENT &&
             Named(&error, LATTE_INVALID_ARGUMENT, "model"),
         "no model");
  latte_model_close(model);
  latte_model_close(NULL);
}

static latte_service* Started(void) {
  latte_error error = {.size = sizeof error};
  latte_service* service = NULL;
  int32_t loaded = 0;
  if (latte_service_start(NULL, &service, &error) != LATTE_OK) {
    fprintf(stderr, "start: %s\n", error.message);
    exit(1);
  }
  while (!loaded && latte_service_wait(service, 1000, &loaded, &error) == LATTE_OK) continue;
  Expect(loaded == 1, "the model loads");
  return service;
}

static latte_request Prompt(const char* text, int64_t max_tokens) {
  latte_request request;
  latte_request_init(&request, sizeof request);
  request.prompt = Text(text);
  request.max_tokens = max_tokens;
  request.ignore_eos = 1;
  return request;
}

typedef struct Seen {
  int tokens;
  int finished;
  uint64_t user_data;
} Seen;

static void Count(void* context, const latte_event* const* events, size_t count) {
  Seen* seen = context;
  for (size_t i = 0; i < count; ++i) {
    seen->tokens += events[i]->token >= 0;
    seen->finished += events[i]->finish != LATTE_FINISH_NONE;
    seen->user_data = events[i]->user_data;
  }
}

static void TestGenerate(latte_service* service) {
  latte_error error = {.size = sizeof error};
  Seen seen = {0, 0, 0};
  latte_request request = Prompt("Once upon a time", 12);
  request.n = 2, request.user_data = 77;
  Expect(latte_service_generate(service, &request, Count, &seen, &error) == LATTE_OK, "generate");
  Expect(seen.tokens == 24 && seen.finished == 2 && seen.user_data == 77, "both answers");
  Expect(latte_service_generate(service, &request, NULL, NULL, &error) == LATTE_INVALID_ARGUMENT,
         "no sink");
  request.temperature = -1;
  Expect(
      latte_service_generate(service, &request, Count, &seen, &error) == LATTE_INVALID_ARGUMENT &&
          Named(&error, LATTE_INVALID_ARGUMENT, "temperature"),
      "a bad value is named");
}

// The results of a request until its last one.
static latte_code Last(latte_queue* queue, latte_request_id id, char* bytes, size_t room,
                       int* answers) {
  size_t used = 0;
  for (int turn = 0; turn < 1000; ++turn) {
    const latte_result* const* results;
    size_t count;
    if (latte_queue_take(queue, 1000, &results, &count, NULL) != LATTE_OK) return LATTE_INTERNAL;
    for (size_t i = 0; i < count; ++i) {
      const latte_result* result = results[i];
      Expect(result->size == sizeof *result && result->request == id, "results are of the request");
      if (result->answer != NULL) *answers += result->answer->token_count == 5;
      if (used + result->bytes.bytes < room)
        memcpy(bytes + used, result->bytes.data, result->bytes.bytes), used += result->bytes.bytes;
      bytes[used] = '\0';
      if (result->last) return result->error_code;
    }
  }
  return LATTE_INTERNAL;
}

static void TestQueue(latte_service* service) {
  latte_error error = {.size = sizeof error};
  latte_queue* queue = NULL;
  latte_request_id id = 0;
  char bytes[8192];
  int answers = 0;
  Expect(latte_queue_create(&queue, &error) == LATTE_OK, "a queue");
  latte_request request = Prompt("Once", 5);
  request.n = 3;
  Expect(latte_service_submit(service, queue, &request, 1, &id, &error) == LATTE_OK, "submit");
  Expect(Last(queue, id, bytes, sizeof bytes, &answers) == LATTE_OK && answers == 3,
         "whole answers");
  const char* body = "{\"prompt\": \"Once\", \"max_tokens\": 5, \"seed\": 1}";
  Expect(latte_service_answer(service, queue, Text("/v1/completions"), Text(body), 0, &id,
                              &error) == LATTE_OK,
         "a body of the OpenAI API");
  Expect(Last(queue, id, bytes, sizeof bytes, &answers) == LATTE_OK &&
             strstr(bytes, "\"object\":\"text_completion\"") != NULL,
         "its answer");
  Expect(latte_service_answer(service, queue, Text("/v2"), Text(body), 0, &id, &error) ==
             LATTE_NOT_FOUND,
         "a url that is no API");
  Expect(latte_service_answer(service, queue, Text("/v1/completions"), Text("{\"prompts\": 1}"), 0,
                              &id, &error) == LATTE_INVALID_ARGUMENT,
         "an unknown field");
  request = Prompt("Once", 100000);
  request.n = 1;
  Expect(latte_service_submit(service, queue, &request, 1, &id, &error) == LATTE_OK &&
             latte_service_cancel(service, id, &error) == LATTE_OK &&
             Last(queue, id, bytes, sizeof bytes, &answers) == LATTE_OK,
         "a cancelled request ends");
  int32_t descriptor = -1;
  Expect(latte_queue_descriptor(queue, &descriptor, &error) == LATTE_OK && descriptor >= 0,
         "a descriptor");
  Expect(latte_service_submit(NULL, queue, &request, 1, &id, &error) == LATTE_INVALID_ARGUMENT,
         "no service");
  Expect(latte_service_submit(service, queue, &request, 2, &id, &error) == LATTE_INVALID_ARGUMENT,
         "a bad flag");
  latte_queue_destroy(queue);
}

// The logits of a sequence agree with the scores of its tokens.
static void TestLogits(latte_service* service) {
  enum { kTokens = 6, kMostVocab = 1 << 20 };
  latte_error error = {.size = sizeof error};
  const int32_t tokens[kTokens] = {5, 6, 7, 8, 9, 10};
  char info[1 << 16];
  size_t bytes = 0;
  latte_model_info(latte_service_model(service), info, sizeof info - 1, &bytes, &error);
  info[bytes < sizeof info ? bytes : sizeof info - 1] = '\0';
  const size_t vocab = (size_t)atol(strstr(info, "\"vocab_size\":") + strlen("\"vocab_size\":"));
  float* logits = calloc(kTokens * vocab, sizeof *logits);
  latte_queue* queue = NULL;
  latte_request_id id = 0;
  char text[64];
  int answers = 0;
  latte_queue_create(&queue, &error);
  Expect(latte_service_logits(service, queue, tokens, kTokens, 0, logits, kTokens * vocab - 1, 0,
                              &id, &error) == LATTE_INVALID_ARGUMENT &&
             Named(&error, LATTE_INVALID_ARGUMENT, "capacity"),
         "too little room");
  Expect(latte_service_logits(service, queue, tokens, kTokens, kTokens, logits, kTokens * vocab, 0,
                              &id, &error) == LATTE_INVALID_ARGUMENT,
         "a first token after the end");
  Expect(latte_service_logits(service, queue, tokens, kTokens, 0, logits, kTokens * vocab, 0, &id,
                              &error) == LATTE_OK &&
             Last(queue, id, text, sizeof text, &answers) == LATTE_OK,
         "logits");
  float scores[kTokens];
  Expect(latte_service_score(service, tokens, kTokens, scores, &error) == LATTE_OK, "score");
  for (int i = 0; i + 1 < kTokens; ++i) {
    double sum = 0;
    for (size_t v = 0; v < vocab; ++v) sum += exp(logits[(size_t)i * vocab + v]);
    const double logprob = logits[(size_t)i * vocab + (size_t)tokens[i + 1]] - log(sum);
    Expect(fabs(logprob - scores[i + 1]) < 1e-3, "logits and scores agree");
  }
  latte_queue_destroy(queue);
  free(logits);
}

static void TestStop(latte_service* service) {
  latte_error error = {.size = sizeof error};
  latte_stats stats = {.size = sizeof stats};
  latte_engine_options options = {.size = sizeof options};
  Expect(latte_service_stats(service, &stats, &error) == LATTE_OK && stats.requests_finished > 5,
         "stats");
  Expect(
      latte_service_settled_options(service, &options, &error) == LATTE_OK && options.threads > 0,
      "settled options");
  latte_queue* queue = NULL;
  latte_request_id id = 0;
  char text[64];
  int answers = 0;
  latte_queue_create(&queue, &error);
  latte_request request = Prompt("Once", 1000000);
  Expect(latte_service_submit(service, queue, &request, 1, &id, &error) == LATTE_OK, "submit");
  latte_service_stop(service);
  Expect(Last(queue, id, text, sizeof text, &answers) == LATTE_UNAVAILABLE,
         "a stopped service ends its requests");
  latte_queue_destroy(queue);
  latte_service_stop(NULL);
}

static void TestOps(void) {
  latte_error error = {.size = sizeof error};
  latte_ops* ops = NULL;
  const float x[6] = {1, 2, 3, 4, 5, 6}, w[6] = {1, 0, 0, 0, 1, 0};
  float y[4] = {0};
  Expect(latte_ops_create(1, &ops, &error) == LATTE_OK, "ops");
  Expect(latte_op_gemm(ops, x, w, y, 2, 2, 3, "f32", &error) == LATTE_OK && y[0] == 1 &&
             y[1] == 2 && y[2] == 4 && y[3] == 5,
         "gemm");
  Expect(latte_op_gemm(ops, x, w, y, 2, 0, 3, "f32", &error) == LATTE_INVALID_ARGUMENT &&
             Named(&error, LATTE_INVALID_ARGUMENT, "N"),
         "a size of 0 is named");
  Expect(latte_op_gemm(ops, x, NULL, y, 2, 2, 3, "f32", &error) == LATTE_INVALID_ARGUMENT &&
             Named(&error, LATTE_INVALID_ARGUMENT, "w"),
         "no array");
  Expect(latte_op_gemm(ops, x, w, y, 2, 2, 3, "f8", &error) == LATTE_INVALID_ARGUMENT, "dtype");
  latte_mla_decode decode = {.size = 3};
  Expect(latte_op_mla_decode(ops, &decode, &error) == LATTE_INVALID_ARGUMENT, "a bad size");
  latte_ops_destroy(ops);
}

int main(void) {
  Expect(latte_abi_version() >= 1, "abi_version");
  TestModel();
  latte_service* service = Started();
  TestGenerate(service);
  TestQueue(service);
  TestLogits(service);
  TestStop(service);
  TestOps();
  if (failures == 0) puts("the C API of services holds");
  return failures != 0;
}

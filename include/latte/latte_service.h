// Part of latte.h, which includes it: a model's tokenizer and formats without its weights, and an
// engine that owns its thread. The rules of latte.h apply here, too.
//
// Buffers: a function that fills a buffer of the caller writes at most `capacity` elements and
//          always sets the required count. A larger count is not an error: call again with a larger
//          buffer. The buffer may be NULL with capacity 0.
#ifndef LATTE_LATTE_SERVICE_H_
#define LATTE_LATTE_SERVICE_H_

#include "latte/latte.h"

#ifdef __cplusplus
extern "C" {
#endif

// Grows by 1 with each version that adds functions or members. A program that needs version
// N checks latte_abi_version() >= N.
int32_t latte_abi_version(void);

// The small files of a model: tokenizer, chat format, sizes. Immutable, so thread-safe.
typedef struct latte_model latte_model;

// `model`: as latte_engine_options.model. Reads no weights. `*out` is NULL after an error.
latte_code latte_model_open(const char* model, latte_model** out, latte_error* error);
void latte_model_close(latte_model* model);  // NULL is allowed

// The token ids of `text`. bos: 0 or 1, begin with the start token if the model wants one.
// parse_special: 0 or 1, text of a special token means the token.
latte_code latte_model_encode(const latte_model* model, latte_text text, int32_t bos,
                              int32_t parse_special, int32_t* tokens, size_t capacity,
                              size_t* count, latte_error* error);

// The bytes of tokens; they may be invalid UTF-8. skip_special: 0 or 1, special tokens add nothing.
latte_code latte_model_decode(const latte_model* model, const int32_t* tokens, size_t count,
                              int32_t skip_special, char* text, size_t capacity, size_t* bytes,
                              latte_error* error);

// The prompt that the chat format makes of `body`, the JSON body of a /v1/chat/completions request:
// its messages, and tools, reasoning_effort, chat_template_kwargs if it has them.
latte_code latte_model_chat_prompt(const latte_model* model, latte_text body, int32_t* tokens,
                                   size_t capacity, size_t* count, latte_error* error);

// Sizes, token ids, chat format and generation defaults as a JSON object.
latte_code latte_model_info(const latte_model* model, char* json, size_t capacity, size_t* bytes,
                            latte_error* error);

// As latte_request_init, with the sampling parameters of the model's generation_config.json.
latte_code latte_model_request_init(const latte_model* model, latte_request* request, size_t size,
                                    latte_error* error);

// An engine with its own thread. All its functions except stop are thread-safe.
typedef struct latte_service latte_service;

// Called on the service's thread while it loads; must return. `message` and `what` live until then.
typedef void (*latte_log)(void* context, const char* message);
typedef void (*latte_progress)(void* context, const char* what, int64_t done, int64_t total);

typedef struct latte_service_options {
  size_t size;
  const latte_engine_options* engine;  // NULL: the defaults
  latte_log log;                       // warnings about options and model; NULL: none
  latte_progress progress;             // progress of loading the model; NULL: none
  void* context;                       // of both
} latte_service_options;

// Begins to load the model and returns. `options` may be NULL. `*service` is NULL after an error.
latte_code latte_service_start(const latte_service_options* options, latte_service** service,
                               latte_error* error);

// Waits at most `timeout_ms` for the model (0 or more; above a day: a day). `*loaded`: 1 if it is
// loaded, else 0. Errors: of loading; the error of a failed step.
latte_code latte_service_wait(latte_service* service, int64_t timeout_ms, int32_t* loaded,
                              latte_error* error);

// Ends all requests with LATTE_UNAVAILABLE, waits for the running step or for the end of loading,
// and frees the service. NULL is allowed. Results in queues stay.
void latte_service_stop(latte_service* service);

// A queue of results for the program. One thread at a time takes from a queue; several requests may
// share one. A queue may outlive the service.
typedef struct latte_queue latte_queue;

latte_code latte_queue_create(latte_queue** queue, latte_error* error);
// Results that come later are dropped. NULL is allowed.
void latte_queue_destroy(latte_queue* queue);

// One answer from its first token to its end.
typedef struct latte_answer {
  size_t size;  // by the library
  int32_t choice;
  latte_finish finish;
  const int32_t* tokens;
  size_t token_count;
  latte_text text;                       // ends in NUL
  const latte_token_logprobs* logprobs;  // [token_count] if the request wants them, else NULL
  const latte_token_logprobs* prompt_logprobs;  // of prompt tokens 1, 2, …
  size_t prompt_logprob_count;
  const latte_event* end;  // its last event: counts, times, stop string, error
} latte_answer;

// A part of the output of a request. It and all data that it points to live until the next call of
// latte_queue_take or latte_queue_destroy.
typedef struct latte_result {
  size_t size;  // by the library
  latte_request_id request;
  uint64_t user_data;
  const latte_event* event;    // of latte_service_submit; NULL otherwise
  const latte_answer* answer;  // of latte_service_submit with `whole`; NULL otherwise
  latte_text bytes;            // of latte_service_answer; ends in NUL
  int32_t last;                // 1: no other result follows
  latte_code error_code;       // of the request as a whole
  const char* error_message;   // ends in NUL, never NULL
} latte_result;

// Takes all results; waits at most `timeout_ms` for the first (0 or more; above a day: a day).
// `*count` is 0 if none arrived.
latte_code latte_queue_take(latte_queue* queue, int64_t timeout_ms,
                            const latte_result* const** results, size_t* count, latte_error* error);

// A file descriptor for poll, which is readable while results wait: once per step, for any number
// of requests in the queue. It lives as long as the queue; do not read or close it.
latte_code latte_queue_descriptor(latte_queue* queue, int32_t* descriptor, latte_error* error);

// Puts a request into the engine's queue. whole: 0, an event per token; 1, a latte_answer per
// answer. Errors: of latte_engine_submit; LATTE_UNAVAILABLE while the model loads.
latte_code latte_service_submit(latte_service* service, latte_queue* queue,
                                const latte_request* request, int32_t whole, latte_request_id* id,
                                latte_error* error);

// Answers the JSON `body` as `latte serve` does at `url`: /v1/chat/completions, /v1/completions,
// /v1/responses or /v1/messages. Reasoning and tool calls are separated from the content. The bytes
// of the results are one JSON text or, with "stream": true, server-sent events.
// Errors: LATTE_NOT_FOUND for another url; the refusals of the server.
latte_code latte_service_answer(latte_service* service, latte_queue* queue, latte_text url,
                                latte_text body, uint64_t user_data, latte_request_id* id,
                                latte_error* error);

// Computes the logits of a given sequence, between two steps of the engine. Row i of `logits`
// belongs to token first + i: [count − first, vocab_size] f32, which must live until the last
// result. Errors: LATTE_INVALID_ARGUMENT for ids outside the vocabulary, for more tokens than the
// context, and for a capacity, in numbers, that is too small.
latte_code latte_service_logits(latte_service* service, latte_queue* queue, const int32_t* tokens,
                                size_t count, size_t first, float* logits, size_t capacity,
                                uint64_t user_data, latte_request_id* id, latte_error* error);

// Ends a request early; its last result still arrives. Ignores an id that is unknown or done.
latte_code latte_service_cancel(latte_service* service, latte_request_id id, latte_error* error);

// Submits a request and waits for its end. `sink` receives its events on the thread of the caller.
// Errors: of latte_service_submit. The last event of a failed answer has its error.
latte_code latte_service_generate(latte_service* service, const latte_request* request,
                                  latte_event_sink sink, void* context, latte_error* error);

// The natural logarithm of the probability of each given token after the previous tokens: [count];
// the first value is 0. Waits for the result. Errors: of latte_service_submit, and of the
// computation.
latte_code latte_service_score(latte_service* service, const int32_t* tokens, size_t count,
                               float* logprobs, latte_error* error);

// As latte_engine_stats and latte_engine_settled_options; the strings live as long as the service.
latte_code latte_service_stats(latte_service* service, latte_stats* stats, latte_error* error);
latte_code latte_service_settled_options(latte_service* service, latte_engine_options* options,
                                         latte_error* error);

// The model of the service, which lives as long as the service. NULL for NULL.
const latte_model* latte_service_model(const latte_service* service);

#ifdef __cplusplus
}
#endif

#endif  // LATTE_LATTE_SERVICE_H_

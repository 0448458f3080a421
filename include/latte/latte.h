// The engine for C, and for languages that call C: the interface of engine.h as functions and
// plain structs.
//
// Errors:  a function that can fail returns a latte_code and writes the reason into the caller's
//          latte_error (may be NULL). No function throws. Wrong values do not end the process, if
//          the arguments follow the rules of this page.
// Structs: structs with a member `size` grow at their end in later versions. The caller sets `size`
//          to sizeof the struct (the init functions do); fields that a caller or a library of
//          another version lacks keep their defaults.
// Memory:  functions copy their arguments before they return. Results belong to the library; their
//          comments give their lifetimes.
// Threads: submit, cancel and stats may be called from any thread while the engine lives. Only the
//          thread that drives the engine may call the other functions.
// Stack:   every call needs at most 256 KiB of the calling thread's stack, in addition to the needs
//          of a sink.
#ifndef LATTE_LATTE_H_
#define LATTE_LATTE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum latte_code {
  LATTE_OK = 0,
  LATTE_INVALID_ARGUMENT = 1,  // the request, the option or the call is wrong
  LATTE_NOT_FOUND = 2,         // the named file or model does not exist
  LATTE_UNSUPPORTED = 3,       // understood, but this version does not do it
  LATTE_CORRUPT = 4,           // a file contradicts its format or its config
  LATTE_EXHAUSTED = 5,         // memory, pages or queue places ran out
  LATTE_CANCELLED = 6,         // the caller gave up
  LATTE_UNAVAILABLE = 7,       // a device, peer or service is not available now
  LATTE_INTERNAL = 8           // a bug in Latte
} latte_code;

typedef enum latte_finish {
  LATTE_FINISH_NONE = 0,       // the answer continues
  LATTE_FINISH_STOP = 1,       // an end-of-sequence token, a stop token or a stop string
  LATTE_FINISH_LENGTH = 2,     // the token limit or the end of the context
  LATTE_FINISH_CANCELLED = 3,  // by the caller
  LATTE_FINISH_ERROR = 4       // with latte_event.error_code; other requests continue
} latte_finish;

typedef struct latte_engine latte_engine;
typedef uint64_t latte_request_id;

// The message of an error. Every call that gets a latte_error writes it; if its size is impossible,
// the call does nothing else and returns LATTE_INVALID_ARGUMENT.
typedef struct latte_error {
  size_t size;  // sizeof(latte_error), by the caller
  latte_code code;
  char message[1020];  // UTF-8, ends in NUL; empty with LATTE_OK, cut if it is too long
} latte_error;

// Text by address and length. `data` may be NULL for an empty text.
typedef struct latte_text {
  const char* data;
  size_t bytes;  // at most 1 GiB; SIZE_MAX: up to the NUL
} latte_text;

typedef struct latte_logit_bias {
  int32_t token;
  float bias;  // added to the token's logit
} latte_logit_bias;

// Limits and layout of one engine. Strings end in NUL; NULL means the default.
typedef struct latte_engine_options {
  size_t size;
  const char* model;                 // a Hugging Face folder, a repo id in its cache, or "tiny"
  const char* dtype;                 // arithmetic: "bf16", "f16" or "f32"
  const char* cache_dtype;           // "": `dtype`; or a format of latents, e.g. "int8"
  const char* attention;             // "auto", "decompressed", "latent", "absorbed" or "sparse"
  const char* deterministic;         // "strict", "on" or "off"
  const char* cache_dir;             // keeps prefixes in this folder too; "": in memory only
  int64_t cache_dir_bytes;           // size limit of cache_dir
  int64_t page_tokens;               // tokens per cache page; power of two, 16 … 256
  int64_t cache_bytes;               // 0: the memory that remains after weights and workspace
  int64_t max_tokens;                // longest sequence; 0: the model's context, if it fits
  int64_t max_batch_tokens;          // new tokens per step, decode and prefill together
  int64_t max_sequences;             // sequences computed at once
  int64_t max_queued_requests;       // waiting, in addition to max_sequences
  int64_t max_queued_tokens;         // prompt tokens of waiting requests
  int64_t aging_steps;               // a waiting request gains one priority per so many steps
  int64_t prefill_workspace_tokens;  // cached tokens that prefill expands at once; 0: a default
  int32_t threads;                   // 0: one per processor, within the container's quota
  int32_t int8_activations;          // 0 or 1; for int4 and int8 weights, unless dtype is f32
  int32_t check_weights;             // 0 or 1: refuse weights that are not finite
  int32_t prefix_cache;              // 0 or 1: cached prefixes of prompts are not computed again
  const char* draft_tokens;          // drafts per step and sequence: "0" to "4", or "auto"
  const char* drafter;               // "mtp" or "lookup"
  int64_t tp;                        // 1: engines of this library are one process
  int64_t ep;                        // 1
  int64_t dp;                        // 1
  const char* dp_policy;             // "balanced", "tokens" or "round-robin"; has no effect
  const char* expert_exchange;       // "auto"; has no effect
  const char* device;                // "cpu", "cuda", or "cuda:N" for GPU N
} latte_engine_options;

// One prompt and its settings.
typedef struct latte_request {
  size_t size;
  latte_text prompt;      // text; or
  const int32_t* tokens;  // ids, which go before `prompt` if there are any
  size_t token_count;
  // The parameters of sampling.
  const latte_logit_bias* logit_bias;
  size_t logit_bias_count;    // ≤ 1024
  double temperature;         // 0: always the likeliest token
  double top_p;               // keep the likeliest tokens that reach this probability; (0, 1]
  double min_p;               // drop tokens below this share of the likeliest one's; [0, 1]
  double repetition_penalty;  // for tokens of prompt or answer; 1: off; (0, 100]
  double presence_penalty;    // subtracted from the logit of every token of the answer; [−2, 2]
  double frequency_penalty;   // the same, once per occurrence; [−2, 2]
  int64_t top_k;              // keep the k likeliest tokens; 0: all
  uint64_t seed;              // the draw depends only on (seed, position)
  // The conditions that end an answer.
  int64_t max_tokens;              // most generated tokens
  int64_t min_tokens;              // before them neither stop tokens nor stop strings end it
  const int32_t* stop_tokens;      // ids that end it
  size_t stop_token_count;         // ≤ 128
  const latte_text* stop_strings;  // texts that end it and are left out, of ≤ 256 bytes
  size_t stop_string_count;        // ≤ 16
  latte_text cache_salt;           // prefixes are shared only among requests with equal salt
  int64_t priority;                // lower is served first; within int32_t
  int32_t ignore_eos;              // 0 or 1: the model's own end-of-sequence tokens do not end it
  int32_t parse_special;           // 0 or 1: special-token text in `prompt` means the token
  int32_t n;                   // answers; answer i draws with a seed made of (seed, i); 1 … 64
  int32_t logprobs;            // alternatives for every token, 0 … 20; −1: none, no logprob
  int32_t prompt_logprobs;     // the same for tokens of the prompt
  int32_t echo;                // 0 or 1: the prompt's text begins the first event's text
  int64_t keep_special;        // 0 or 1: special tokens are part of the answer's text
  uint64_t user_data;          // the caller's own name for the request, echoed by its events
  latte_text grammar;          // the grammar of the answer's text; empty: any text
  const char* grammar_syntax;  // "json-schema", "regex", "ebnf", "lark" or "structural-tag"
} latte_request;

// The natural logarithm of a token's probability, before sampling parameters changed it.
typedef struct latte_logprob {
  int32_t token;
  float logprob;
} latte_logprob;

// A token with its likeliest alternatives, likeliest first.
typedef struct latte_token_logprobs {
  latte_logprob chosen;
  const latte_logprob* top;
  size_t top_count;
} latte_token_logprobs;

// One step forward of one answer. It and all data that it points to live until the sink returns.
typedef struct latte_event {
  size_t size;  // by the library: fields past it do not exist
  latte_request_id request;
  int32_t choice;   // which of n answers
  int32_t token;    // −1: none, the event only reports the end
  latte_text text;  // final text: whole code points, no part of a stop string, special tokens only
                    // with keep_special; ends in NUL
  const latte_token_logprobs* logprobs;         // of `token`; NULL: none
  const latte_token_logprobs* prompt_logprobs;  // of prompt tokens 1, 2, …; before the first token
  size_t prompt_logprob_count;
  int64_t prompt_tokens;      // of the request
  int64_t cached_tokens;      // of them, found in the prefix cache
  int64_t generated_tokens;   // of this answer, this one included
  latte_finish finish;        // any but LATTE_FINISH_NONE: the answer's last event
  latte_code error_code;      // LATTE_OK unless finish is LATTE_FINISH_ERROR
  const char* error_message;  // ends in NUL, never NULL
  uint64_t user_data;         // latte_request.user_data
  double queue_seconds;       // from latte_engine_submit to the first step of the prompt
  double prefill_seconds;     // from there to the first token
  int64_t drafted_tokens;     // guesses of its tokens that steps computed
  int64_t accepted_tokens;    // of them, tokens of the answer
  latte_text stop_string;     // the one that ended the answer; 0 bytes: none did; ends in NUL
} latte_event;

// Counters since creation, and the state after the last step.
typedef struct latte_stats {
  size_t size;
  int64_t waiting;  // answers, not started
  int64_t running;  // answers
  int64_t pages_total;
  int64_t pages_used;    // by running sequences
  int64_t pages_cached;  // kept for prefixes alone
  int64_t page_bytes;    // over all streams and layers
  int64_t page_tokens;
  int64_t steps;
  int64_t requests_finished;  // answers, with any finish reason
  int64_t requests_failed;    // of them, by an error
  int64_t requests_cancelled;
  int64_t preemptions;
  int64_t prompt_tokens;    // of admitted requests
  int64_t cached_tokens;    // of them, found in the prefix cache
  int64_t disk_tokens;      // of those, read from cache_dir
  int64_t computed_tokens;  // new tokens of all steps
  int64_t generated_tokens;
  double step_seconds;       // in latte_engine_step
  double forward_seconds;    // of them, in the model
  int64_t drafted_tokens;    // guesses of tokens that steps computed
  int64_t accepted_tokens;   // of them, generated tokens
  int64_t masks;             // of constrained answers' tokens, drafts included
  double mask_seconds;       // spent on masks, next to the model
  double mask_wait_seconds;  // of step_seconds, waiting for masks
} latte_stats;

const char* latte_version(void);                // of the library: "0.2.0"
const char* latte_code_name(int32_t code);      // "corrupt"; "unknown" for any other value
const char* latte_finish_name(int32_t finish);  // "stop"; "unknown" for any other value

// Fill a struct with the defaults; `size` is sizeof the struct.
// Errors: LATTE_INVALID_ARGUMENT for NULL or an impossible size; nothing is written then.
latte_code latte_engine_options_init(latte_engine_options* options, size_t size);
latte_code latte_request_init(latte_request* request, size_t size);

// Loads the model; `options` may be NULL for the defaults. `*engine` is NULL after an error.
// Errors: LATTE_INVALID_ARGUMENT naming the field; errors of loading; LATTE_EXHAUSTED if not even
// one sequence fits in the cache.
latte_code latte_engine_create(const latte_engine_options* options, latte_engine** engine,
                               latte_error* error);

// Ends every request without an event. NULL is allowed. Not from the sink.
void latte_engine_destroy(latte_engine* engine);

// Puts a request into the queue. Thread-safe. The sink receives its events; if another thread
// drives the engine, the first may arrive before this call returns. user_data identifies them.
// Errors: LATTE_INVALID_ARGUMENT for a request that can never be served; LATTE_EXHAUSTED if the
// queue is full.
latte_code latte_engine_submit(latte_engine* engine, const latte_request* request,
                               latte_request_id* id, latte_error* error);

// Ends all answers of a request within one step. Ignores an id that is unknown or done.
// Thread-safe.
latte_code latte_engine_cancel(latte_engine* engine, latte_request_id id, latte_error* error);

// Called once per step, on the thread of latte_engine_step, with all events of the step. It may
// call submit, cancel, stats and set_event_sink. It must return: do not throw or longjmp.
typedef void (*latte_event_sink)(void* context, const latte_event* const* events, size_t count);

// From the next step, `sink` receives events; NULL: they are dropped.
latte_code latte_engine_set_event_sink(latte_engine* engine, latte_event_sink sink, void* context,
                                       latte_error* error);

// Advances every admitted sequence by one step. Never waits: without work it does nothing. A bad
// request fails alone, through its event. If a step has too little memory, its largest request
// fails in the same way (LATTE_EXHAUSTED). Errors: LATTE_EXHAUSTED if memory runs out elsewhere.
// Every later step then fails, too; destroy the engine.
latte_code latte_engine_step(latte_engine* engine, latte_error* error);

// Sleeps until there is work, at most `timeout_ms` (0 or more; above a day: a day).
// `*has_work`: 1 when there is, else 0.
latte_code latte_engine_wait_for_work(latte_engine* engine, int64_t timeout_ms, int32_t* has_work,
                                      latte_error* error);

// Ends the current wait_for_work, or the next one if none is running. Thread-safe.
latte_code latte_engine_wake(latte_engine* engine, latte_error* error);

// Writes prefixes that are only in memory to cache_dir, and waits until they are written.
latte_code latte_engine_save_prefixes(latte_engine* engine, latte_error* error);

// Writes at most `stats->size` bytes. Thread-safe.
latte_code latte_engine_stats(latte_engine* engine, latte_stats* stats, latte_error* error);

// The options with all values resolved: lengths, sizes and the number of threads. Writes at most
// `options->size` bytes; the strings live as long as the engine.
latte_code latte_engine_settled_options(latte_engine* engine, latte_engine_options* options,
                                        latte_error* error);

#ifdef __cplusplus
}
#endif

#include "latte/latte_ops.h"
#include "latte/latte_service.h"

#endif  // LATTE_LATTE_H_

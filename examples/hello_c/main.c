// Two answers to one prompt, side by side. Usage: hello_c [MODEL [PROMPT]]
#include <latte/latte.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { kAnswers = 2, kMostBytes = 4096 };

// Both answers, as far as they have arrived.
typedef struct Answers {
  char text[kAnswers][kMostBytes];
  size_t bytes[kAnswers];
  int finished;
  bool failed;
} Answers;

static void Collect(void* context, const latte_event* const* events, size_t count) {
  Answers* answers = context;
  for (size_t i = 0; i < count; ++i) {
    const latte_event* event = events[i];
    size_t* used = &answers->bytes[event->choice];
    if (event->text.bytes < kMostBytes - *used) {
      memcpy(answers->text[event->choice] + *used, event->text.data, event->text.bytes);
      *used += event->text.bytes;
    }
    if (event->finish == LATTE_FINISH_ERROR) {
      fprintf(stderr, "hello_c: answer %d: %s\n", event->choice + 1, event->error_message);
      answers->failed = true;
    }
    answers->finished += event->finish != LATTE_FINISH_NONE;
  }
}

static int Fail(const latte_error* error) {
  fprintf(stderr, "hello_c: %s: %s\n", latte_code_name(error->code), error->message);
  return 1;
}

// Submits the prompt and steps until both answers have ended.
static int Answer(latte_engine* engine, const char* prompt) {
  latte_error error = {.size = sizeof error};
  Answers answers = {.finished = 0};
  latte_request request;
  latte_request_id id;
  latte_request_init(&request, sizeof request);
  request.prompt.data = prompt;  // its length stays "up to the NUL"
  request.n = kAnswers;
  request.max_tokens = 64;
  if (latte_engine_set_event_sink(engine, Collect, &answers, &error)) return Fail(&error);
  if (latte_engine_submit(engine, &request, &id, &error)) return Fail(&error);
  while (answers.finished < kAnswers)
    if (latte_engine_step(engine, &error)) return Fail(&error);
  for (int i = 0; i < kAnswers; ++i)
    printf("%d. %s%.*s\n", i + 1, prompt, (int)answers.bytes[i], answers.text[i]);
  return answers.failed;
}

int main(int argc, char** argv) {
  latte_error error = {.size = sizeof error};
  latte_engine_options options;
  latte_engine* engine;
  latte_engine_options_init(&options, sizeof options);
  if (argc > 1) options.model = argv[1];
  if (latte_engine_create(&options, &engine, &error)) return Fail(&error);
  const int status = Answer(engine, argc > 2 ? argv[2] : "Once upon a time");
  latte_engine_destroy(engine);
  return status;
}

// The C API on a thread of little stack, as bindings call it: create, submit, step, destroy.
#include "tests/support/small_stack.h"

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "latte/latte.h"

#include "tests/support/parameter_name.h"

namespace latte::small_stack_test {
namespace {

struct Case {
  const char* attention;
  const char* dtype;
  const char* cache_dtype;
  int threads = 1;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.attention << " " << c.dtype << " " << c.cache_dtype << " " << c.threads;
}

class SmallStack : public testing::TestWithParam<Case> {};

struct Engine {
  explicit Engine(const Case& c) {
    latte_engine_options options;
    EXPECT_EQ(latte_engine_options_init(&options, sizeof options), LATTE_OK);
    options.model = model.c_str();
    options.attention = c.attention;
    options.dtype = c.dtype;
    options.cache_dtype = c.cache_dtype;
    options.cache_bytes = 32 << 20;
    options.threads = c.threads;
    options.check_weights = 1;
    EXPECT_EQ(latte_engine_create(&options, &engine, &error), LATTE_OK) << error.message;
  }
  ~Engine() { latte_engine_destroy(engine); }

  std::string model = std::string(LATTE_SOURCE_DIR) + "/models/tiny";
  latte_error error = {.size = sizeof error};
  latte_engine* engine = nullptr;
};

void CountAnswers(void* context, const latte_event* const* events, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    EXPECT_NE(events[i]->finish, LATTE_FINISH_ERROR) << events[i]->error_message;
    if (events[i]->finish != LATTE_FINISH_NONE) ++*static_cast<int*>(context);
  }
}

latte_request RequestOf(const std::vector<int32_t>& tokens) {
  latte_request request;
  EXPECT_EQ(latte_request_init(&request, sizeof request), LATTE_OK);
  request.tokens = tokens.data();
  request.token_count = tokens.size();
  request.max_tokens = 6;
  return request;
}

// A prompt of several chunks, a text with every kind of drawing, and some short ones.
void Submit(Engine& e) {
  std::vector<int32_t> tokens(700);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(10 + i * 7 % 50);
  latte_request_id id;
  latte_request request = RequestOf(tokens);
  request.prompt_logprobs = 2;
  ASSERT_EQ(latte_engine_submit(e.engine, &request, &id, &e.error), LATTE_OK) << e.error.message;
  request = RequestOf({});
  const std::string text = "Once upon a time \xe6\x97\xa5\xe6\x9c\xac " + std::string(300, 'a');
  request.prompt = {text.data(), text.size()};
  request.temperature = 0.9;
  request.top_p = 0.95;
  request.min_p = 0.01;
  request.top_k = 40;
  request.repetition_penalty = 1.1;
  request.presence_penalty = 0.1;
  request.logprobs = 5;
  request.n = 2;
  request.echo = 1;
  ASSERT_EQ(latte_engine_submit(e.engine, &request, &id, &e.error), LATTE_OK) << e.error.message;
  for (int32_t i = 0; i < 3; ++i) {
    request = RequestOf(tokens);
    request.token_count = static_cast<size_t>(i + 1);
    ASSERT_EQ(latte_engine_submit(e.engine, &request, &id, &e.error), LATTE_OK) << e.error.message;
  }
}

void CreateStepDestroy(const Case& c) {
  Engine e(c);
  ASSERT_NE(e.engine, nullptr);
  int ended = 0;
  ASSERT_EQ(latte_engine_set_event_sink(e.engine, CountAnswers, &ended, &e.error), LATTE_OK);
  Submit(e);
  for (int step = 0; step < 200 && ended < 6; ++step)
    ASSERT_EQ(latte_engine_step(e.engine, &e.error), LATTE_OK) << e.error.message;
  EXPECT_EQ(ended, 6);
}

TEST_P(SmallStack, AnEngineLivesAndDies) {
  testing_support::OnSmallStack([] { CreateStepDestroy(GetParam()); });
}

std::vector<Case> Cases() {
  std::vector<Case> out;
  for (const char* attention : {"auto", "decompressed", "latent", "absorbed"})
    for (const char* dtype : {"bf16", "f16", "f32"}) out.push_back({attention, dtype, ""});
  for (const char* cache : {"fp8", "fp8-dense", "int8", "q6"})
    for (const char* attention : {"latent", "absorbed"})
      out.push_back({attention, "bf16", cache, 2});
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, SmallStack, testing::ValuesIn(Cases()),
                         testing_support::ParameterName());

}  // namespace
}  // namespace latte::small_stack_test

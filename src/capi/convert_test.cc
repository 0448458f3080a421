#include "src/capi/convert.h"

#include <limits>

#include <gtest/gtest.h>

namespace latte::capi {
namespace {

// The lists of names below hold every member of a C++ struct: one that is added there does not
// compile here until the C API has it too.

EngineOptions UnusualOptions() {
  return {.model = "m",
          .dtype = "f32",
          .cache_dtype = "int8",
          .attention = "latent",
          .deterministic = "strict",
          .int8_activations = false,
          .check_weights = true,
          .threads = 3,
          .page_tokens = 32,
          .cache_bytes = 4,
          .max_tokens = 5,
          .max_batch_tokens = 6,
          .max_sequences = 7,
          .max_queued_requests = 8,
          .max_queued_tokens = 9,
          .aging_steps = 10,
          .prefill_workspace_tokens = 11,
          .prefix_cache = false,
          .cache_dir = "d",
          .cache_dir_bytes = 12};
}

auto AllMembers(const EngineOptions& options) {
  const auto& [model, dtype, cache_dtype, attention, deterministic, int8_activations, check_weights,
               threads, page_tokens, cache_bytes, max_tokens, max_batch_tokens, max_sequences,
               max_queued_requests, max_queued_tokens, aging_steps, prefill_workspace_tokens,
               prefix_cache, cache_dir, cache_dir_bytes] = options;
  return std::tuple(model, dtype, cache_dtype, attention, deterministic, int8_activations,
                    check_weights, threads, page_tokens, cache_bytes, max_tokens, max_batch_tokens,
                    max_sequences, max_queued_requests, max_queued_tokens, aging_steps,
                    prefill_workspace_tokens, prefix_cache, cache_dir, cache_dir_bytes);
}

TEST(Convert, OptionsComeBackAsTheyWere) {
  const EngineOptions options = UnusualOptions();
  const Result<EngineOptions> back = FromC(ToC(options));
  ASSERT_TRUE(back);
  EXPECT_EQ(AllMembers(*back), AllMembers(options));
  EXPECT_EQ(AllMembers(*FromC(ToC(EngineOptions()))), AllMembers(EngineOptions()));
}

TEST(Convert, NullStringsOfOptionsAreTheDefaults) {
  latte_engine_options options = ToC(DefaultOptions());
  options.model = options.dtype = options.cache_dtype = options.attention = nullptr;
  options.deterministic = options.cache_dir = nullptr;
  EXPECT_EQ(AllMembers(*FromC(options)), AllMembers(EngineOptions()));
}

auto AllMembers(const Request& request) {
  const auto& [prompt, tokens, parse_special, sampling, stop, n, logprobs, prompt_logprobs, echo,
               keep_special, priority, cache_salt, user_data] = request;
  const auto& [temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty,
               frequency_penalty, logit_bias, seed] = sampling;
  const auto& [max_tokens, min_tokens, ignore_eos, stop_tokens, stop_strings] = stop;
  return std::tuple(prompt, tokens, parse_special, temperature, top_k, top_p, min_p,
                    repetition_penalty, presence_penalty, frequency_penalty, logit_bias, seed,
                    max_tokens, min_tokens, ignore_eos, stop_tokens, stop_strings, n, logprobs,
                    prompt_logprobs, echo, keep_special, priority, cache_salt, user_data);
}

TEST(Convert, TheDefaultRequestIsThatOfCpp) {
  EXPECT_EQ(AllMembers(*FromC(DefaultRequest())), AllMembers(Request()));
}

TEST(Convert, EveryMemberOfARequestArrives) {
  const int32_t tokens[] = {1, 2, 3};
  const latte_logit_bias bias[] = {{4, 0.5f}, {5, -1.5f}};
  const int32_t stop_tokens[] = {6, 7};
  const latte_text stop_strings[] = {{"ab", 1}, {"cd", SIZE_MAX}, {nullptr, 0}};
  const latte_request c = {.size = sizeof(latte_request),
                           .prompt = {"p\0q", 3},
                           .tokens = tokens,
                           .token_count = 3,
                           .logit_bias = bias,
                           .logit_bias_count = 2,
                           .temperature = 0.1,
                           .top_p = 0.2,
                           .min_p = 0.3,
                           .repetition_penalty = 1.4,
                           .presence_penalty = 0.5,
                           .frequency_penalty = 0.6,
                           .top_k = 7,
                           .seed = std::numeric_limits<uint64_t>::max(),
                           .max_tokens = 8,
                           .min_tokens = 9,
                           .stop_tokens = stop_tokens,
                           .stop_token_count = 2,
                           .stop_strings = stop_strings,
                           .stop_string_count = 3,
                           .cache_salt = {"salt", SIZE_MAX},
                           .priority = -3,
                           .ignore_eos = 1,
                           .parse_special = 1,
                           .n = 10,
                           .logprobs = 11,
                           .prompt_logprobs = 12,
                           .echo = 1,
                           .keep_special = 1,
                           .user_data = std::numeric_limits<uint64_t>::max()};
  Request expected = {.prompt = std::string("p\0q", 3),
                      .tokens = {1, 2, 3},
                      .parse_special = true,
                      .sampling = {.temperature = 0.1,
                                   .top_k = 7,
                                   .top_p = 0.2,
                                   .min_p = 0.3,
                                   .repetition_penalty = 1.4,
                                   .presence_penalty = 0.5,
                                   .frequency_penalty = 0.6,
                                   .logit_bias = {{4, 0.5f}, {5, -1.5f}},
                                   .seed = std::numeric_limits<uint64_t>::max()},
                      .stop = {.max_tokens = 8,
                               .min_tokens = 9,
                               .ignore_eos = true,
                               .tokens = {6, 7},
                               .strings = {"a", "cd", ""}},
                      .n = 10,
                      .logprobs = 11,
                      .prompt_logprobs = 12,
                      .echo = true,
                      .keep_special = true,
                      .priority = -3,
                      .cache_salt = "salt",
                      .user_data = std::numeric_limits<uint64_t>::max()};
  const Result<Request> arrived = FromC(c);
  ASSERT_TRUE(arrived) << arrived.error().message;
  EXPECT_EQ(AllMembers(*arrived), AllMembers(expected));
}

TEST(Convert, EveryCounterArrives) {
  const EngineStats stats = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  const auto& [waiting, running, pages_total, pages_used, pages_cached, page_bytes, page_tokens,
               steps, requests_finished, requests_failed, requests_cancelled, preemptions,
               prompt_tokens, cached_tokens, disk_tokens, computed_tokens, generated_tokens,
               step_seconds, forward_seconds] = stats;
  const latte_stats c = ToC(stats);
  EXPECT_EQ(c.waiting, waiting);
  EXPECT_EQ(c.running, running);
  EXPECT_EQ(c.pages_total, pages_total);
  EXPECT_EQ(c.pages_used, pages_used);
  EXPECT_EQ(c.pages_cached, pages_cached);
  EXPECT_EQ(c.page_bytes, page_bytes);
  EXPECT_EQ(c.page_tokens, page_tokens);
  EXPECT_EQ(c.steps, steps);
  EXPECT_EQ(c.requests_finished, requests_finished);
  EXPECT_EQ(c.requests_failed, requests_failed);
  EXPECT_EQ(c.requests_cancelled, requests_cancelled);
  EXPECT_EQ(c.preemptions, preemptions);
  EXPECT_EQ(c.prompt_tokens, prompt_tokens);
  EXPECT_EQ(c.cached_tokens, cached_tokens);
  EXPECT_EQ(c.disk_tokens, disk_tokens);
  EXPECT_EQ(c.computed_tokens, computed_tokens);
  EXPECT_EQ(c.generated_tokens, generated_tokens);
  EXPECT_EQ(c.step_seconds, step_seconds);
  EXPECT_EQ(c.forward_seconds, forward_seconds);
}

void ExpectRefused(const latte_request& request, const std::string& member) {
  const Result<Request> converted = FromC(request);
  ASSERT_FALSE(converted) << member;
  EXPECT_EQ(converted.error().code, Code::kInvalidArgument);
  EXPECT_EQ(converted.error().message.find(member + ": expected"), 0u) << converted.error().message;
}

template <class Change>
latte_request With(Change change) {
  latte_request request = DefaultRequest();
  change(request);
  return request;
}

// Lengths beyond the limits come with a short array: nothing of it may be read.
TEST(Convert, RefusesArraysThatCannotBeRead) {
  static const int32_t one_id = 1;
  static const latte_logit_bias one_bias = {1, 1};
  static const latte_text one_text = {"x", 1};
  ExpectRefused(With([](auto& r) { r.prompt = {nullptr, 1}; }), "prompt");
  ExpectRefused(With([](auto& r) { r.prompt = {"x", SIZE_MAX - 1}; }), "prompt");
  ExpectRefused(With([](auto& r) { r.cache_salt = {nullptr, 1}; }), "cache_salt");
  ExpectRefused(With([](auto& r) { r.token_count = 1; }), "token_count");
  ExpectRefused(With([](auto& r) { r.tokens = &one_id, r.token_count = SIZE_MAX; }), "token_count");
  ExpectRefused(With([](auto& r) { r.logit_bias_count = 1; }), "logit_bias_count");
  ExpectRefused(With([](auto& r) { r.logit_bias = &one_bias, r.logit_bias_count = 1025; }),
                "logit_bias_count");
  ExpectRefused(With([](auto& r) { r.stop_token_count = 1; }), "stop_token_count");
  ExpectRefused(With([](auto& r) { r.stop_tokens = &one_id, r.stop_token_count = 129; }),
                "stop_token_count");
  ExpectRefused(With([](auto& r) { r.stop_string_count = 1; }), "stop_string_count");
  ExpectRefused(With([](auto& r) { r.stop_strings = &one_text, r.stop_string_count = 17; }),
                "stop_string_count");
}

TEST(Convert, RefusesFlagsThatAreNeitherYesNorNo) {
  for (const int32_t bad : {2, -1, std::numeric_limits<int32_t>::min()}) {
    ExpectRefused(With([&](auto& r) { r.ignore_eos = bad; }), "ignore_eos");
    ExpectRefused(With([&](auto& r) { r.parse_special = bad; }), "parse_special");
    ExpectRefused(With([&](auto& r) { r.echo = bad; }), "echo");
    ExpectRefused(With([&](auto& r) { r.keep_special = bad; }), "keep_special");
    for (auto member :
         {&latte_engine_options::int8_activations, &latte_engine_options::check_weights,
          &latte_engine_options::prefix_cache}) {
      latte_engine_options options = ToC(DefaultOptions());
      options.*member = bad;
      EXPECT_FALSE(FromC(options));
    }
  }
  ExpectRefused(With([](auto& r) { r.priority = int64_t{1} << 31; }), "priority");
}

}  // namespace
}  // namespace latte::capi

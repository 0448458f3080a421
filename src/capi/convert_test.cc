#include "src/capi/convert.h"

#include <limits>
#include <type_traits>

#include <gtest/gtest.h>

namespace latte::capi::convert_test {
namespace {

// A value that no field has by default, in C++ and in C.
bool Unusual(bool usual) { return !usual; }
int Unusual(int usual) { return usual + 3; }
int64_t Unusual(int64_t usual) { return usual + 5; }
uint64_t Unusual(uint64_t) { return std::numeric_limits<uint64_t>::max(); }
double Unusual(double usual) { return usual + 0.25; }
std::string Unusual(const std::string& usual) { return usual + "x"; }
std::vector<int32_t> Unusual(const std::vector<int32_t>&) { return {6, 7}; }
std::vector<std::string> Unusual(const std::vector<std::string>&) { return {"a", "cd", ""}; }
std::vector<std::pair<int32_t, float>> Unusual(const std::vector<std::pair<int32_t, float>>&) {
  return {{4, 0.5f}, {5, -1.5f}};
}

// A C member as a C program sets it.
template <class From, class To>
void SetC(const From& from, To& to) {
  to = static_cast<To>(from);
}
void SetC(const std::string& from, const char*& to) { to = from.c_str(); }
void SetC(const std::string& from, latte_text& to) { to = {from.data(), from.size()}; }

// The same list as Unusual makes.
const int32_t kTokens[] = {6, 7};
const latte_text kStrings[] = {{"ab", 1}, {"cd", SIZE_MAX}, {nullptr, 0}};
const latte_logit_bias kBias[] = {{4, 0.5f}, {5, -1.5f}};
void SetC(CArray<int32_t> to) { to.data = kTokens, to.count = 2; }
void SetC(CArray<latte_text> to) { to.data = kStrings, to.count = 3; }
void SetC(CArray<latte_logit_bias> to) { to.data = kBias, to.count = 2; }

template <class... InC>
constexpr bool kOnlyInCpp = (std::is_same_v<InC, OnlyInCpp> || ...);

template <class T>
void MakeUnusual(T& value) {
  T::VisitFields([&](const Field&, auto member, auto... in_c) {
    if constexpr (!kOnlyInCpp<decltype(in_c)...>) member(value) = Unusual(member(value));
  });
}

// `value`, whose texts C points to, must live as long as `c`.
template <class T, class C>
void SetAllC(const T& value, C& c) {
  T::VisitFields([&](const Field&, auto member, auto... in_c) {
    if constexpr (sizeof...(in_c) == 0) {
      SetC(member(value), member(c));
    } else if constexpr (!kOnlyInCpp<decltype(in_c)...>) {
      (SetC(in_c(c)), ...);
    }
  });
}

template <class T>
void ExpectEqual(const T& found, const T& expected) {
  T::VisitFields([&](const Field& field, auto member, auto...) {
    EXPECT_EQ(member(found), member(expected)) << field.name;
  });
}

TEST(Convert, EveryOptionComesBackAsItWas) {
  EngineOptions options;
  MakeUnusual(options);
  const latte_engine_options c = ToC(options);
  EXPECT_EQ(c.size, sizeof c);
  const Result<EngineOptions> back = FromC(c);
  ASSERT_TRUE(back);
  ExpectEqual(*back, options);
  ExpectEqual(*FromC(ToC(EngineOptions())), EngineOptions());
}

TEST(Convert, EveryOptionIsReadFromItsMember) {
  EngineOptions options;
  MakeUnusual(options);
  latte_engine_options c = ToC(DefaultOptions());
  SetAllC(options, c);
  ExpectEqual(*FromC(c), options);
}

TEST(Convert, NullStringsOfOptionsAreTheDefaults) {
  latte_engine_options options = ToC(DefaultOptions());
  EngineOptions::VisitFields([&](const Field&, auto member, auto... in_c) {
    if constexpr (!kOnlyInCpp<decltype(in_c)...>)
      if constexpr (std::is_same_v<decltype(member(options)), const char*&>)
        member(options) = nullptr;
  });
  ExpectEqual(*FromC(options), EngineOptions());
}

void ExpectSame(const Request& found, const Request& expected) {
  EXPECT_EQ(found.prompt, expected.prompt);
  EXPECT_EQ(found.tokens, expected.tokens);
  ExpectEqual(found, expected);
  ExpectEqual(found.sampling, expected.sampling);
  ExpectEqual(found.stop, expected.stop);
}

TEST(Convert, TheDefaultRequestIsThatOfCpp) {
  EXPECT_EQ(DefaultRequest().size, sizeof(latte_request));
  ExpectSame(*FromC(DefaultRequest()), Request());
}

TEST(Convert, EveryMemberOfARequestArrives) {
  const int32_t tokens[] = {1, 2, 3};
  Request expected;
  expected.prompt = std::string("p\0q", 3);
  expected.tokens = {1, 2, 3};
  MakeUnusual(expected);
  MakeUnusual(expected.sampling);
  MakeUnusual(expected.stop);
  latte_request c = DefaultRequest();
  c.prompt = {"p\0q", 3};
  c.tokens = tokens;
  c.token_count = 3;
  SetAllC(expected, c);
  SetAllC(expected.sampling, c);
  SetAllC(expected.stop, c);
  const Result<Request> arrived = FromC(c);
  ASSERT_TRUE(arrived) << arrived.error().message;
  ExpectSame(*arrived, expected);
}

// Marks the bytes of each member that the lists name; no two share one.
template <class C>
struct Layout {
  C c = {};
  std::vector<bool> named = std::vector<bool>(sizeof(C));

  template <class Member>
  void Mark(const Member& member, std::string_view name) {
    const auto at = static_cast<size_t>(reinterpret_cast<const char*>(&member) -
                                        reinterpret_cast<const char*>(&c));
    for (size_t i = at; i < at + sizeof member; ++i) {
      EXPECT_FALSE(named[i]) << name;
      named[i] = true;
    }
  }
  template <class Member>
  void operator()(const Field& field, Member member) {
    Mark(member(c), field.name);
  }
  template <class Member>
  void operator()(const Field&, Member, OnlyInCpp) {}
  template <class Member, class Array>
  void operator()(const Field& field, Member, Array array) {
    const auto members = array(c);
    Mark(members.data, field.name);
    Mark(members.count, field.name);
  }
};

template <class C>
void ExpectAllNamed(const Layout<C>& layout) {
  for (size_t i = 0; i < sizeof(C); ++i)
    EXPECT_TRUE(layout.named[i]) << "no list names the member at offset " << i;
}

TEST(Convert, TheListsNameEveryMemberOfTheCStructs) {
  Layout<latte_engine_options> options;
  options.Mark(options.c.size, "size");
  EngineOptions::VisitFields(options);
  ExpectAllNamed(options);

  Layout<latte_request> request;
  request.Mark(request.c.size, "size");
  request.Mark(request.c.prompt, "prompt");
  request.Mark(request.c.tokens, "tokens");
  request.Mark(request.c.token_count, "token_count");
  Request::VisitFields(request);
  SamplingParams::VisitFields(request);
  StopConditions::VisitFields(request);
  ExpectAllNamed(request);
}

TEST(Convert, EveryCounterArrives) {
  const EngineStats stats = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13,
                             14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25};
  const auto& [waiting, running, pages_total, pages_used, pages_cached, page_bytes, page_tokens,
               steps, requests_finished, requests_failed, requests_cancelled, preemptions,
               prompt_tokens, cached_tokens, disk_tokens, computed_tokens, generated_tokens,
               step_seconds, forward_seconds, drafted_tokens, accepted_tokens, masks, mask_seconds,
               mask_wait_seconds, of_groups] = stats;
  (void)of_groups;  // an engine of C is one process
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
  EXPECT_EQ(c.drafted_tokens, drafted_tokens);
  EXPECT_EQ(c.accepted_tokens, accepted_tokens);
  EXPECT_EQ(c.masks, masks);
  EXPECT_EQ(c.mask_seconds, mask_seconds);
  EXPECT_EQ(c.mask_wait_seconds, mask_wait_seconds);
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
    EngineOptions::VisitFields([&](const Field& field, auto member, auto...) {
      EngineOptions cpp;
      if constexpr (std::is_same_v<decltype(member(cpp)), bool&>) {
        latte_engine_options options = ToC(DefaultOptions());
        member(options) = bad;
        EXPECT_FALSE(FromC(options)) << field.name;
      }
    });
  }
  ExpectRefused(With([](auto& r) { r.priority = int64_t{1} << 31; }), "priority");
}

}  // namespace
}  // namespace latte::capi::convert_test

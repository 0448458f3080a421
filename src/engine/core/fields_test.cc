#include "src/base/fields/fields.h"

#include <set>

#include <gtest/gtest.h>

#include "latte/options.h"
#include "latte/request.h"

#include "src/engine/attention_mode.h"
#include "src/tensor/arithmetic.h"

namespace latte::fields_test {
namespace {

template <class Check>
void ForAllLists(Check check) {
  EngineOptions::VisitFields(check);
  SamplingParams::VisitFields(check);
  StopConditions::VisitFields(check);
  Request::VisitFields(check);
}

std::string MessageOf(const Status& status) { return status ? "" : status.error().message; }

TEST(Fields, NamesOfFlagsVariablesAndKeys) {
  const Field plain{.name = "max_tokens"};
  EXPECT_EQ(FlagNames(plain), "--max-tokens");
  EXPECT_EQ(Variable(plain), "LATTE_MAX_TOKENS");
  EXPECT_EQ(JsonKey(plain), "max_tokens");
  const Field given{.name = "a", .flag = "-n,--max-new", .json = "b"};
  EXPECT_EQ(FlagNames(given), "-n,--max-new");
  EXPECT_EQ(LongFlag(given), "--max-new");
  EXPECT_EQ(Variable(given), "LATTE_MAX_NEW");
  EXPECT_EQ(JsonKey(given), "b");
  EXPECT_EQ(Variable({.name = "int8", .flag = "--no-int8"}), "LATTE_INT8");
  const Field none{.name = "a", .flag = kNoName, .json = kNoName};
  EXPECT_EQ(FlagNames(none), "");
  EXPECT_EQ(Variable(none), "");
  EXPECT_EQ(JsonKey(none), "");
}

TEST(Fields, NumbersAreHeldToTheirRange) {
  const Field share{.name = "p", .range = {0, 1, /*above_low=*/true}};
  EXPECT_EQ(MessageOf(CheckField(share, "p", 1.0)), "");
  EXPECT_EQ(MessageOf(CheckField(share, "p", 0.0)), "p: expected a number in (0, 1], found 0");
  const Field pages{.name = "p", .range = {.low = 16, .high = 256, .power_of_two = true}};
  EXPECT_EQ(MessageOf(CheckField(pages, "p", 32)), "");
  EXPECT_EQ(MessageOf(CheckField(pages, "p", 48)), "p: expected a power of two, found 48");
  EXPECT_EQ(MessageOf(CheckField(pages, "p", 512)), "p: expected a number in [16, 256], found 512");
  const Field large{.name = "b", .range = {1, static_cast<double>(int64_t{1} << 50)}};
  EXPECT_EQ(MessageOf(CheckField(large, "b", 0)),
            "b: expected a number in [1, 1125899906842624], found 0");
}

TEST(Fields, TextsAreHeldToTheirChoices) {
  Field field{.name = "f", .choices = "a, bc or d-e"};
  EXPECT_EQ(Choices(field), (std::vector<std::string_view>{"a", "bc", "d-e"}));
  for (const std::string good : {"a", "bc", "d-e"}) EXPECT_TRUE(CheckField(field, "f", good));
  for (const std::string bad : {"", "x", "a, bc", "or"})
    EXPECT_EQ(MessageOf(CheckField(field, "f", bad)),
              "f: expected a, bc or d-e, found '" + bad + "'");
  EXPECT_EQ(MessageOf(CheckField(field, "f", std::string("d_e"))),
            "f: expected a, bc or d-e, found 'd_e'; did you mean d-e?");
  field.may_be_empty = true;
  EXPECT_TRUE(CheckField(field, "f", std::string()));
}

template <class T>
struct ListWalker {
  std::set<std::string> names;
  const T defaults = {};

  template <class Member, class... InC>
  void operator()(const Field& field, Member member, InC...) {
    SCOPED_TRACE(field.name);
    EXPECT_TRUE(names.emplace(field.name).second) << "listed twice";
    EXPECT_FALSE(field.help.empty());
    for (const char c : field.help) EXPECT_TRUE(c >= ' ' && c <= '~');
    EXPECT_TRUE(CheckField(field, field.name, member(defaults))) << "the default is refused";
  }
};

TEST(Fields, EveryDefaultIsAccepted) {
  EngineOptions::VisitFields(ListWalker<EngineOptions>());
  SamplingParams::VisitFields(ListWalker<SamplingParams>());
  StopConditions::VisitFields(ListWalker<StopConditions>());
  Request::VisitFields(ListWalker<Request>());
}

TEST(Fields, NoTwoFieldsShareAFlagOrAKey) {
  std::set<std::string> flags;
  std::set<std::string> keys;
  ForAllLists([&](const Field& field, auto...) {
    const std::string flag = LongFlag(field);
    EXPECT_TRUE(flag.empty() || flags.insert(flag).second) << flag;
  });
  const auto add_key = [&](const Field& field, auto...) {
    const std::string key(JsonKey(field));
    EXPECT_TRUE(key.empty() || keys.insert(key).second) << key;
  };
  SamplingParams::VisitFields(add_key);
  StopConditions::VisitFields(add_key);
  Request::VisitFields(add_key);
}

// Each number's range is used: the next number outside it is refused by name.
TEST(Fields, ValidateRefusesWhatTheListRefuses) {
  const auto check = [](auto given, char separator) {
    using T = decltype(given);
    T::VisitFields([&](const Field& field, auto member, auto...) {
      using Value = std::remove_reference_t<decltype(member(given))>;
      if constexpr (std::is_same_v<Value, std::string>) {
        if (field.choices.empty()) return;
        T bad;
        member(bad) = "no such word";
        EXPECT_NE(MessageOf(bad.Validate()).find(NameInMessages(field, separator)),
                  std::string::npos);
      } else if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>) {
        if (!(field.range.low > -1e9)) return;
        T bad;
        member(bad) = static_cast<Value>(field.range.low - 1);
        EXPECT_NE(MessageOf(bad.Validate()).find(NameInMessages(field, separator) + ": expected"),
                  std::string::npos)
            << field.name << " = " << member(bad) << ": " << MessageOf(bad.Validate());
      }
    });
  };
  check(EngineOptions(), '-');
  check(SamplingParams(), '_');
  check(StopConditions(), '_');
  check(Request(), '_');
}

// The words of the lists are those that the engine understands.
TEST(Fields, EveryChoiceOfTheEngineParses) {
  for (const std::string_view word : Choices(FieldOf<EngineOptions>("dtype")))
    EXPECT_TRUE(ParseArithmetic(word)) << word;
  for (const std::string_view word : Choices(FieldOf<EngineOptions>("cache_dtype")))
    EXPECT_TRUE(ParseCacheDType(word)) << word;
  for (const std::string_view word : Choices(FieldOf<EngineOptions>("attention")))
    EXPECT_TRUE(ParseAttentionMode(word)) << word;
  for (const std::string_view word : Choices(FieldOf<EngineOptions>("deterministic")))
    EXPECT_TRUE(ParseDeterminism(word)) << word;
}

}  // namespace
}  // namespace latte::fields_test

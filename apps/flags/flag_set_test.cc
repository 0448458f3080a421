#include "apps/flags/flag_set.h"

#include <gtest/gtest.h>

#include "apps/flags/values/field_value.h"
#include "apps/flags/values/value_text.h"

namespace latte::flag_set_test {
namespace {

using Words = std::vector<std::string>;

// A program with one command that has options of all kinds.
struct Program {
  CommandLine line{"help"};
  FlagSet command = line.flags().AddCommand("run", "runs");
  int64_t number = 7;
  double share = 0.5;
  std::string text = "x";
  bool on = false;
  bool off = true;
  int64_t bytes = 0;
  std::vector<int64_t> counts = {1};
  std::vector<std::string> stops;
  std::string model = "tiny";
  bool ran = false;

  Program() {
    command.Add("MODEL", model, "");
    command.Add("-n,--number", number, "").Range(0, 100);
    command.Add("--share", share, "");
    command.Add("--text", text, "");
    const Flag first = command.AddSwitch("--on", on, "");
    command
        .AddSwitch(
            "--off", [this] { off = false; }, "")
        .Excludes(first);
    command.Add("--bytes", bytes, "").Bytes();
    command.Add("--counts", counts, "").CommaSeparated();
    command.Add("--stop", stops, "");
    command.OnChosen([this] { ran = true; });
  }
  // "": the flags are set.
  std::string Set(Words words) {
    words.insert(words.begin(), {"latte", "run"});
    const CommandInfo info = line.flags().Info();
    const Result<CheckedWords> checked = CheckWords(words, info);
    if (!checked) return checked.error().message;
    const Status status = line.Set(*checked);
    return status ? "" : status.error().message;
  }
};

TEST(FlagSet, ValuesOfAllTypes) {
  Program p;
  EXPECT_EQ(p.Set({"big", "-n", "5", "--share=0.25", "--text", "a b", "--on", "--bytes", "2KiB",
                   "--counts", "1,8,,16", "--stop", "a,b", "--stop", "c"}),
            "");
  EXPECT_EQ(p.model, "big");
  EXPECT_EQ(p.number, 5);
  EXPECT_EQ(p.share, 0.25);
  EXPECT_EQ(p.text, "a b");
  EXPECT_TRUE(p.on);
  EXPECT_TRUE(p.off);
  EXPECT_EQ(p.bytes, 2048);
  EXPECT_EQ(p.counts, (std::vector<int64_t>{1, 8, 16}));
  EXPECT_EQ(p.stops, (Words{"a,b", "c"}));
  EXPECT_TRUE(p.ran);
  EXPECT_TRUE(p.command.chosen());
}

TEST(FlagSet, WhatIsNotGivenStays) {
  Program p;
  EXPECT_EQ(p.Set({}), "");
  EXPECT_EQ(p.number, 7);
  EXPECT_EQ(p.counts, std::vector<int64_t>{1});
}

TEST(FlagSet, TheLastValueCounts) {
  Program p;
  EXPECT_EQ(p.Set({"--text", "a", "--text", "b", "--on", "--on=false"}), "");
  EXPECT_EQ(p.text, "b");
  EXPECT_FALSE(p.on);
}

TEST(FlagSet, ErrorsNameTheFlag) {
  const std::pair<Words, const char*> kCases[] = {
      {{"-n", "101"}, "--number: expected 0 to 100, found '101'"},
      {{"-n", "x"}, "--number: expected 0 to 100, found 'x'"},
      {{"-n", "x", "-n", "1"}, "--number: expected 0 to 100, found 'x'"},
      {{"--share", "x"}, "--share: expected a number, found 'x'"},
      {{"--counts", "1,x"}, "--counts: expected a number, found '1,x'"},
      {{"--on=perhaps"}, "--on: expected a number, found 'perhaps'"},
      {{"--bytes", "1X"}, "--bytes: expected bytes, such as 1073741824 or 1G, found '1X'"},
      {{"--off", "--on"}, "--on excludes --off"}};
  for (const auto& [words, message] : kCases) {
    Program p;
    EXPECT_EQ(p.Set(words), message);
    EXPECT_FALSE(p.ran);
  }
  Program p;
  std::string out;
  p.command.Add("-o,--output", out, "").Required();
  EXPECT_EQ(p.Set({}), "--output is required");
}

TEST(FlagSet, InfoListsWhatWasAdded) {
  const Program p;
  const CommandInfo info = p.line.flags().Info().commands.front();
  EXPECT_EQ(info.name, "run");
  EXPECT_EQ(FindOption(info, "--number")->names, (Words{"-n", "--number"}));
  EXPECT_EQ(FindOption(info, "--number")->value, "N");
  EXPECT_EQ(FindOption(info, "--bytes")->value, "BYTES");
  EXPECT_EQ(FindOption(info, "--on")->value, "");
  EXPECT_TRUE(FindOption(info, "--stop")->repeatable);
  EXPECT_FALSE(FindOption(info, "--text")->repeatable);
  EXPECT_EQ(info.options.back().names, (Words{"-h", "--help"}));
}

TEST(ValueText, Numbers) {
  int64_t value = 0;
  const std::pair<const char*, int64_t> kTexts[] = {
      {"12", 12}, {"-3", -3}, {"0x10", 16}, {"", 0}, {"9223372036854775807", INT64_MAX}};
  for (const auto& [text, number] : kTexts) {
    EXPECT_TRUE(ReadValue(text, value)) << text;
    EXPECT_EQ(value, number) << text;
  }
  for (const char* text :
       {"x", "1x", "1.5", "1e3", "- 1", "--1", "9223372036854775808", "-9223372036854775809"})
    EXPECT_FALSE(ReadValue(text, value)) << text;
  int small = 0;
  EXPECT_FALSE(ReadValue("3000000000", small));
  uint64_t positive = 0;
  EXPECT_TRUE(ReadValue("18446744073709551615", positive));
  EXPECT_EQ(positive, UINT64_MAX);
  for (const char* text : {"-1", "18446744073709551616"})
    EXPECT_FALSE(ReadValue(text, positive)) << text;
  double real = 0;
  EXPECT_TRUE(ReadValue("1e-400", real));
}

TEST(FieldValue, AVariableWithSeedMinusOneDrawsOne) {
  const Field field = {.name = "seed"};
  uint64_t seed = UINT64_MAX;
  EXPECT_TRUE(ReadFieldText(field, "-1", &seed));
  EXPECT_LE(seed, UINT32_MAX);
  EXPECT_FALSE(ReadFieldText(field, "-2", &seed));
  EXPECT_TRUE(ReadFieldText(field, "7", &seed));
  EXPECT_EQ(seed, 7u);
}

TEST(ValueText, Bytes) {
  const std::pair<const char*, const char*> kTexts[] = {
      {"12", "12"},         {"1k", "1024"}, {"1 KiB", "1024"}, {"2mb", "2097152"},
      {"3G", "3221225472"}, {"K", "1024"},  {"5b", "5"},       {"16E", ""},
      {"1q", ""},           {"", ""},       {"1.5G", ""},      {"1kx", ""}};
  for (const auto& [text, bytes] : kTexts) EXPECT_EQ(PlainBytes(text).value_or(""), bytes) << text;
}

TEST(ValueText, Switches) {
  for (const char* text : {"", "true", "ON", "yes", "1", "2", "+"})
    EXPECT_EQ(ReadSwitch(text), true) << text;
  for (const char* text : {"false", "off", "No", "0", "-1", "-"})
    EXPECT_EQ(ReadSwitch(text), false) << text;
  EXPECT_EQ(ReadSwitch("perhaps"), std::nullopt);
}

}  // namespace
}  // namespace latte::flag_set_test

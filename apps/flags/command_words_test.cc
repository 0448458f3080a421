#include "apps/flags/command_words.h"

#include <gtest/gtest.h>

#include "apps/flags/aliases/program_test.h"

namespace latte::command_words_test {
namespace {

using Words = std::vector<std::string>;

// The command, then names and values; or the error.
Words Checked(Words words) {
  words.insert(words.begin(), "latte");
  const CommandInfo program = TestProgram();
  const Result<CheckedWords> got = CheckWords(words, program);
  if (!got) return {got.error().message};
  Words out = {got->command->name};
  for (const GivenValue& given : got->values) out.insert(out.end(), {given.option, given.value});
  return out;
}

TEST(CommandWords, SpellingsOfAnOption) {
  for (const Words& words : {Words{"run", "-n", "2"}, Words{"run", "-n=2"}, Words{"run", "-n2"}})
    EXPECT_EQ(Checked(words), (Words{"run", "-n", "2"}));
  for (const Words& words :
       {Words{"run", "--max_new_tokens", "2"}, Words{"run", "--max-new-tokens=2"}})
    EXPECT_EQ(Checked(words), (Words{"run", "--max-new-tokens", "2"}));
  EXPECT_EQ(Checked({"run", "-p", "-n", "-p=a=b", "--prompt="}),
            (Words{"run", "-p", "-n", "-p", "a=b", "--prompt", ""}));
}

TEST(CommandWords, UnknownNamesGetASuggestion) {
  EXPECT_EQ(Checked({"rum"}),
            Words{"latte: unknown command rum; did you mean run? see latte --help"});
  EXPECT_EQ(
      Checked({"bench", "modle"}),
      Words{"latte bench: unknown command modle; did you mean model? see latte bench --help"});
  EXPECT_EQ(
      Checked({"run", "--promt", "x"}),
      Words{"latte run: unknown option --promt; did you mean --prompt? see latte run --help"});
  EXPECT_EQ(Checked({""}), Words{"latte: unknown command ''; see latte --help"});
  EXPECT_EQ(Checked({"run", "--zzzzzzzz"}),
            Words{"latte run: unknown option --zzzzzzzz; see latte run --help"});
}

TEST(CommandWords, MissingValuesAndArgumentsTooMany) {
  EXPECT_EQ(Checked({"run", "-n"}),
            Words{"latte run: -n: expected a value (TEXT), found none; see latte run --help"});
  EXPECT_EQ(
      Checked({"run", "--prompt", "--json"}),
      Words{"latte run: --prompt: expected a value (TEXT), found the option --json; see latte "
            "run --help"});
  EXPECT_EQ(
      Checked({"run", "tiny", "hello"}),
      Words{"latte run: unexpected argument 'hello'; the prompt is given with -p; see latte run "
            "--help"});
  EXPECT_EQ(Checked({"batch", "tiny", "x"}),
            Words{"latte batch: unexpected argument 'x'; see latte batch --help"});
}

TEST(CommandWords, HelpIsAskedForAnywhere) {
  const CommandInfo program = TestProgram();
  const auto helps = [&](const Words& words) {
    const Result<CheckedWords> got = CheckWords(words, program);
    return got && got->help ? got->command->title() : "no";
  };
  EXPECT_EQ(helps({"latte", "--help"}), "latte");
  EXPECT_EQ(helps({"latte", "run", "-h"}), "latte run");
  EXPECT_EQ(helps({"latte", "run", "tiny", "--help", "--zzz"}), "latte run");
  EXPECT_EQ(helps({"latte", "bench", "model", "-h"}), "latte bench model");
  EXPECT_EQ(helps({"latte", "run", "-p", "-h"}), "no");  // a value
}

TEST(CommandWords, ACommandIsNeeded) {
  const CommandInfo program = TestProgram();
  EXPECT_TRUE(CheckWords({"latte"}, program)->incomplete);
  EXPECT_TRUE(CheckWords({"latte", "bench"}, program)->incomplete);
  EXPECT_FALSE(CheckWords({"latte", "run"}, program)->incomplete);
  EXPECT_TRUE(CheckWords({"latte", "-v"}, program)->version);
}

TEST(CommandWords, WhatStandsAfterTwoDashesIsAnArgument) {
  EXPECT_EQ(Checked({"run", "--", "--help"}), (Words{"run", "MODEL", "--help"}));
}

}  // namespace
}  // namespace latte::command_words_test

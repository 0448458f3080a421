#include "apps/flags/aliases/aliases.h"

#include <set>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apps/flags/aliases/program_test.h"
#include "apps/flags/command_words.h"

namespace latte::aliases_test {
namespace {

using Words = std::vector<std::string>;

// A value that the alias takes; empty: it takes none.
Words SampleValue(const Alias& alias) {
  if (alias.words == AliasWords::kNone) return {};
  if (alias.flag == "--dtype") return {"bfloat16"};
  if (alias.flag == "--cache-dtype") return {"fp8_e4m3"};
  if (alias.effect == AliasEffect::kChecked) return {"auto"};
  return {"1"};
}

// The command of the tests that takes an alias: serve, or else run.
CommandInfo CommandFor(const Alias& alias) {
  const CommandInfo program = TestProgram();
  const CommandInfo* serve = FindCommand(program, "serve");
  const bool all = alias.scope == AliasScope::kAll && !alias.flag.empty();
  return all && FindOption(*serve, alias.flag) == nullptr ? *FindCommand(program, "run") : *serve;
}

// A name may stand for one flag in all commands and be refused where that is missing.
TEST(Aliases, NamesAreUniqueAndLookLikeFlags) {
  std::set<std::tuple<std::string_view, std::string_view, AliasScope>> seen;
  for (const Alias& alias : Aliases()) {
    ASSERT_FALSE(NamesOf(alias).empty());
    for (const std::string_view name : NamesOf(alias)) {
      EXPECT_TRUE(seen.insert({name, alias.flag, alias.scope}).second) << name;
      EXPECT_TRUE(name.starts_with('-')) << name;
      EXPECT_EQ(name.find_first_of(" _=,"), std::string_view::npos) << name;
    }
  }
}

TEST(Aliases, EveryRowSaysWhatItNeeds) {
  for (const Alias& alias : Aliases()) {
    SCOPED_TRACE(alias.names);
    EXPECT_FALSE(alias.of.empty());
    EXPECT_EQ(alias.flag.empty(), alias.effect != AliasEffect::kFlag);
    EXPECT_TRUE(alias.effect != AliasEffect::kChecked || alias.convert != nullptr);
    const bool says_why =
        alias.effect == AliasEffect::kIgnored || alias.effect == AliasEffect::kRefused;
    EXPECT_TRUE(!says_why || !alias.note.empty());
    EXPECT_EQ(alias.note.find_first_of("|\n"), std::string_view::npos);
  }
}

TEST(Aliases, EveryNameIsRewrittenAsItsRowSays) {
  for (const Alias& alias : Aliases())
    for (const std::string_view name : NamesOf(alias)) {
      SCOPED_TRACE(name);
      const CommandInfo command = CommandFor(alias);
      if (FindAlias(name, command) != &alias) continue;  // another row goes first
      Words line = {"latte", command.name, std::string(name)};
      const Words value = SampleValue(alias);
      line.insert(line.end(), value.begin(), value.end());
      const CommandInfo program = TestProgram();
      const Result<CheckedWords> got = CheckWords(line, program);
      if (alias.effect == AliasEffect::kRefused) {
        ASSERT_FALSE(got);
        EXPECT_EQ(got.error().code, Code::kUnsupported);
        EXPECT_TRUE(got.error().message.starts_with(fmt::format("{}: not supported: ", name)));
        continue;
      }
      ASSERT_TRUE(got) << got.error().message;
      const bool noted = !got->notes.empty();
      switch (alias.effect) {
        case AliasEffect::kIgnored:
          EXPECT_TRUE(noted);
          EXPECT_TRUE(got->values.empty());
          break;
        case AliasEffect::kOneRank:
        case AliasEffect::kChecked:
          EXPECT_TRUE(got->values.empty());
          break;
        case AliasEffect::kModel:
          EXPECT_EQ(got->values, (std::vector<GivenValue>{{"MODEL", "1"}}));
          break;
        default:
          ASSERT_FALSE(got->values.empty());
          EXPECT_TRUE(alias.flag.starts_with(got->values[0].option)) << got->values[0].option;
          EXPECT_EQ(noted, command.name == "serve" && FindOption(command, name) == nullptr &&
                               alias.flag != name);
      }
    }
}

TEST(Aliases, FlagsOfTheServerAreNotOfBatch) {
  const CommandInfo program = TestProgram();
  const CommandInfo& serve = *FindCommand(program, "serve");
  const CommandInfo& batch = *FindCommand(program, "batch");
  EXPECT_NE(FindAlias("--alias", serve), nullptr);
  EXPECT_EQ(FindAlias("--alias", batch), nullptr);
  EXPECT_NE(FindAlias("--max_model_len", batch), nullptr);
  EXPECT_EQ(FindAlias("--no-such-flag", serve), nullptr);
}

TEST(Aliases, ThePageHasARowForEach) {
  const std::string page = AliasesDocument();
  for (const Alias& alias : Aliases())
    for (const std::string_view name : NamesOf(alias))
      EXPECT_NE(page.find(fmt::format("`{}`", name)), std::string::npos) << name;
}

}  // namespace
}  // namespace latte::aliases_test

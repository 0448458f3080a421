#include "apps/flags/aliases/aliases.h"

#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apps/flags/aliases/rewrite.h"

namespace latte {
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

TEST(Aliases, NamesAreUniqueAndLookLikeFlags) {
  std::set<std::string_view> seen;
  for (const Alias& alias : Aliases()) {
    ASSERT_FALSE(NamesOf(alias).empty());
    for (const std::string_view name : NamesOf(alias)) {
      EXPECT_TRUE(seen.insert(name).second) << name;
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
      Words line = {"latte", "serve", std::string(name)};
      const Words value = SampleValue(alias);
      line.insert(line.end(), value.begin(), value.end());
      const Result<CommandWords> got = RewriteAliases(line);
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
          EXPECT_EQ(got->words.size(), 2u);
          break;
        case AliasEffect::kOneRank:
        case AliasEffect::kChecked:
          EXPECT_EQ(got->words.size(), 2u);
          break;
        case AliasEffect::kModel:
          EXPECT_EQ(got->words, (Words{"latte", "serve", "1"}));
          break;
        default:
          ASSERT_GE(got->words.size(), 3u);
          EXPECT_TRUE(alias.flag.starts_with(got->words[2])) << got->words[2];
          EXPECT_EQ(noted, alias.flag != name);
      }
    }
}

TEST(Aliases, FlagsOfTheServerAreNotOfBatch) {
  EXPECT_NE(FindAlias("--alias", false), nullptr);
  EXPECT_EQ(FindAlias("--alias", true), nullptr);
  EXPECT_NE(FindAlias("--max_model_len", true), nullptr);
  EXPECT_EQ(FindAlias("--no-such-flag", false), nullptr);
}

TEST(Aliases, ThePageHasARowForEach) {
  const std::string page = AliasesPage();
  for (const Alias& alias : Aliases())
    for (const std::string_view name : NamesOf(alias))
      EXPECT_NE(page.find(fmt::format("`{}`", name)), std::string::npos) << name;
}

}  // namespace
}  // namespace latte

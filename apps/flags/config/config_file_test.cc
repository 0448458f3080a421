#include "apps/flags/config/config_file.h"

#include <gtest/gtest.h>

#include "latte/options.h"

#include "src/base/fields/fields.h"

namespace latte::config_file_test {
namespace {

// Two tables, one field of each type.
struct Sizes {
  int64_t bytes = 1;
  int count = 2;
  double seconds = 3;

  template <class Visit>
  static void VisitFields(Visit&& visit) {
    visit(
        Field{.name = "bytes", .bytes = true}, [](auto& s) -> auto& { return s.bytes; });
    visit(
        Field{.name = "count"}, [](auto& s) -> auto& { return s.count; });
    visit(
        Field{.name = "seconds"}, [](auto& s) -> auto& { return s.seconds; });
  }
};
struct Names {
  std::string one_name = "x";
  std::vector<std::string> many;
  bool on = false;
  bool fast = false;

  template <class Visit>
  static void VisitFields(Visit&& visit) {
    visit(
        Field{.name = "one_name"}, [](auto& s) -> auto& { return s.one_name; });
    visit(
        Field{.name = "many"}, [](auto& s) -> auto& { return s.many; });
    visit(
        Field{.name = "on"}, [](auto& s) -> auto& { return s.on; });
    visit(
        Field{.name = "fast", .choices = "fast or slow"}, [](auto& s) -> auto& { return s.fast; });
  }
};

Result<ConfigFile> Parse(std::string_view text) {
  return ConfigFile::Parse(text, "f",
                           {ConfigTableOf<Sizes>("sizes"), ConfigTableOf<Names>("names")});
}

template <class T>
Result<T> ReadAs(std::string_view text) {
  LATTE_ASSIGN_OR_RETURN(const ConfigFile file, Parse(text));
  T out;
  LATTE_RETURN_IF_ERROR(ReadConfig(file, out));
  return out;
}

// The error of parsing, or of reading either table.
std::string ErrorOf(std::string_view text) {
  const Result<Sizes> sizes = ReadAs<Sizes>(text);
  if (!sizes) return sizes.error().message;
  const Result<Names> names = ReadAs<Names>(text);
  return names ? "none" : names.error().message;
}

TEST(ConfigFile, ReadsEveryType) {
  constexpr std::string_view kText =
      "seconds = 4\n[sizes]\nbytes = \"1K\"\ncount = -7\n[names]\none-name = 'it'\n"
      "many = [\"a\", \"b\"]\non = true\nfast = \"fast\"\n";
  const Result<Sizes> sizes = ReadAs<Sizes>(kText);
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_EQ(sizes->bytes, 1024);
  EXPECT_EQ(sizes->count, -7);
  EXPECT_EQ(sizes->seconds, 4);
  const Result<Names> names = ReadAs<Names>(kText);
  ASSERT_TRUE(names) << names.error().message;
  EXPECT_EQ(names->one_name, "it");
  EXPECT_EQ(names->many, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(names->on && names->fast);
}

TEST(ConfigFile, AbsentKeysLeaveValuesAlone) {
  const Result<Sizes> sizes = ReadAs<Sizes>("# nothing\n[names]\nmany = 'one'\n");
  ASSERT_TRUE(sizes);
  EXPECT_EQ(sizes->count, 2);
  EXPECT_EQ(ReadAs<Names>("many = 'one'")->many, std::vector<std::string>{"one"});
  EXPECT_TRUE(ReadAs<Names>("many = []")->many.empty());
  EXPECT_FALSE(ReadAs<Names>("fast = 'slow'")->fast);
  EXPECT_FALSE(ReadAs<Names>("fast = false")->fast);
}

TEST(ConfigFile, KnowsWhereAValueIs) {
  const Result<ConfigFile> file = Parse("\n[sizes]\ncount = 1\n");
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->Has(FieldOf<Sizes>("count")));
  EXPECT_FALSE(file->Has(FieldOf<Sizes>("bytes")));
  EXPECT_EQ(file->Place(FieldOf<Sizes>("count")), "f:3: count");
}

TEST(ConfigFile, ErrorsNameLineKeyExpectedAndFound) {
  EXPECT_EQ(ErrorOf("count = 'x'"), "f:1: count: expected a whole number, found 'x'");
  EXPECT_EQ(ErrorOf("count = 2147483648"), "f:1: count: expected a whole number, found 2147483648");
  EXPECT_EQ(ErrorOf("count = 1.0"), "f:1: count: expected a whole number, found 1");
  EXPECT_EQ(ErrorOf("seconds = 'soon'"), "f:1: seconds: expected a number, found 'soon'");
  EXPECT_EQ(ErrorOf("bytes = 'much'"),
            "f:1: bytes: expected bytes, such as 1073741824 or \"1G\", found 'much'");
  EXPECT_EQ(ErrorOf("one_name = 1"), "f:1: one_name: expected a text in quotes, found 1");
  EXPECT_EQ(ErrorOf("many = ['a', [1]]"),
            "f:1: many: expected a list of texts, found a list with a list with 1");
  EXPECT_EQ(ErrorOf("on = 1"), "f:1: on: expected true or false, found 1");
  EXPECT_EQ(ErrorOf("fast = 'on'"), "f:1: fast: expected fast or slow, found 'on'");
  EXPECT_EQ(ErrorOf("count = 10:00:00"), "f:1: count: expected a whole number, found a time");
}

TEST(ConfigFile, ErrorsOfKeysAndTables) {
  EXPECT_EQ(ErrorOf("\ncuont = 1"),
            "f:2: cuont: expected the name of an option (docs/options.md), found an unknown one; "
            "did you mean count?");
  EXPECT_EQ(ErrorOf("[size]\ncount = 1"),
            "f:2: [size]: expected the table [sizes] or [names], found an unknown one");
  EXPECT_EQ(ErrorOf("[names]\ncount = 1"),
            "f:2: count: expected in the table [sizes], found in [names]");
  EXPECT_EQ(ErrorOf("count = 1\n[sizes]\ncount = 2"),
            "f:3: count: expected once, found in line 1 too");
  EXPECT_EQ(ErrorOf("one_name = 'a'\none-name = 'b'"),
            "f:2: one_name: expected once, found in line 1 too");
  EXPECT_TRUE(ErrorOf("[sizes.count]\na = 1").starts_with("f:1: count: expected a whole number"));
}

TEST(ConfigFile, TextThatIsNotToml) {
  for (const char* text : {"count", "count = ", "count = 1\ncount = 1", "[sizes", "'\xff' = 1",
                           "many = [1,", "a = \"\\ud800\""})
    EXPECT_NE(ErrorOf(text).find(": expected TOML: "), std::string::npos) << ErrorOf(text);
  EXPECT_NE(ErrorOf("many = " + std::string(100000, '[')).find("f:1: expected TOML"),
            std::string::npos);
}

TEST(ConfigFile, QuotedTextIsReadBack) {
  const std::string text = "a\"b\\c\n\x01\x7f\xc3\xa9'";
  const Result<Names> names = ReadAs<Names>("one_name = " + TomlQuoted(text));
  ASSERT_TRUE(names) << names.error().message;
  EXPECT_EQ(names->one_name, text);
}

}  // namespace
}  // namespace latte::config_file_test

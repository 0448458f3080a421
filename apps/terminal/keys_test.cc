#include "apps/terminal/keys.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace latte::keys_test {
namespace {

std::wstring CommandOf(std::string_view key) {
  const std::optional<size_t> found = FindKeyCommand(key);
  return found ? KeyCommands()[*found].command : L"";
}

TEST(Keys, AKeyEndsWhereItsBytesEnd) {
  for (const char* key :
       {"\x1b[A", "\x1b[15~", "\x1b[1;5C", "\x1bOP", "\x1bO5P", "\x1b[[A", "\x1b[2$", "\x1b[200~",
        "\x1bx", "\x1b\r", "\x1b\x7f", "\x1bü", "\x1b你"}) {
    const std::string bytes = key;
    EXPECT_EQ(KeyBytes(bytes), bytes.size()) << bytes.substr(1);
    EXPECT_EQ(KeyBytes(bytes + "abc"), bytes.size()) << bytes.substr(1);
    EXPECT_EQ(KeyBytes(bytes + bytes), bytes.size()) << bytes.substr(1);
    for (size_t cut = 1; cut < bytes.size(); ++cut)
      EXPECT_EQ(KeyBytes(bytes.substr(0, cut)), 0u) << bytes.substr(1) << " " << cut;
  }
}

TEST(Keys, BytesThatNoKeyHasAreLeft) {
  EXPECT_EQ(KeyBytes("\x1b[\r"), 2u);
  EXPECT_EQ(KeyBytes("\x1b[1;\x1b[A"), 4u);
  EXPECT_EQ(KeyBytes("\x1b[1ü"), 3u);
  EXPECT_EQ(KeyBytes("\x1bO\n"), 2u);
  EXPECT_EQ(KeyBytes("\x1b\x1b[A"), 1u);
}

TEST(Keys, EveryTerminalsBytesAreKnown) {
  for (const char* home : {"[H", "OH", "[1~", "[7~"}) EXPECT_EQ(CommandOf(home), L"ed-move-to-beg");
  for (const char* end : {"[F", "OF", "[4~", "[8~"}) EXPECT_EQ(CommandOf(end), L"ed-move-to-end");
  for (const char* left : {"[1;5D", "Od", "b"}) EXPECT_EQ(CommandOf(left), L"ed-prev-word");
  EXPECT_EQ(CommandOf("[200~"), L"latte-paste");
  for (const char* other : {"", "[15~", "[2~", "[5~", "x", " ", "[A OA", "["})
    EXPECT_EQ(CommandOf(other), L"") << other;
}

TEST(Keys, NoKeyHasTwoCommands) {
  std::set<std::string_view> seen;
  for (const KeyCommand& command : KeyCommands())
    for (std::string_view keys = command.keys; !keys.empty();) {
      const std::string_view key = keys.substr(0, keys.find(' '));
      EXPECT_TRUE(seen.insert(key).second) << key;
      EXPECT_EQ(KeyBytes("\x1b" + std::string(key)), key.size() + 1) << key;
      keys.remove_prefix(std::min(keys.size(), key.size() + 1));
    }
}

}  // namespace
}  // namespace latte::keys_test

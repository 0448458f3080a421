#include "src/serve/observe/request_id.h"

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace latte::request_id_test {
namespace {

TEST(RequestId, TakesVisibleAsciiOnly) {
  EXPECT_TRUE(IsRequestId("a"));
  EXPECT_TRUE(IsRequestId("550e8400-e29b-41d4-a716-446655440000"));
  EXPECT_TRUE(IsRequestId("!#$%&()*+,-./:;<=>?@[]^_{|}~"));
  EXPECT_TRUE(IsRequestId(std::string(128, 'x')));
  EXPECT_FALSE(IsRequestId(""));
  EXPECT_FALSE(IsRequestId(std::string(129, 'x')));
  for (const std::string bad :
       {"a b", "a\"", "a'", "a`", "a\\", "a\n", "a\r", "a\t", "a\x7f", "ä", "\x1b"})
    EXPECT_FALSE(IsRequestId(bad)) << bad;
  EXPECT_FALSE(IsRequestId(std::string_view("a\0b", 3)));
}

TEST(RequestId, NewOnesAreRandomHex) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = NewRequestId();
    EXPECT_EQ(id.size(), 32U);
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_TRUE(seen.insert(id).second);
  }
}

TEST(RequestIds, KeepsTheClientsId) {
  RequestIds ids;
  EXPECT_EQ(*ids.Take("trace-7"), "trace-7");
  EXPECT_EQ(ids.size(), 0U);
  const TakenId again = ids.Take("trace-7");
  EXPECT_EQ(*again, "trace-7");
  EXPECT_EQ(ids.size(), 1U);
}

// The last copy may be on another thread, and may outlive the list.
TEST(RequestIds, AnIdIsFreeWithItsLastCopy) {
  auto ids = std::make_unique<RequestIds>();
  TakenId id = ids->Take("trace-7");
  std::thread([copy = id]() mutable { copy.reset(); }).join();
  EXPECT_EQ(ids->size(), 1U);
  std::thread([last = std::move(id)]() mutable { last.reset(); }).join();
  EXPECT_EQ(ids->size(), 0U);
  const TakenId late = ids->Take("trace-8");
  ids.reset();
  EXPECT_EQ(*late, "trace-8");
}

TEST(RequestIds, ReplacesABadId) {
  RequestIds ids;
  const TakenId id = ids.Take("a\nb");
  EXPECT_EQ(id->size(), 32U);
  EXPECT_TRUE(IsRequestId(*id));
  EXPECT_NE(*ids.Take(""), *id);
  EXPECT_EQ(RequestIdFor("a\nb").size(), 32U);
  EXPECT_EQ(RequestIdFor("trace-7"), "trace-7");
}

TEST(RequestIds, ARunningIdGetsASuffix) {
  RequestIds ids;
  const std::string longest(128, 'x');
  std::vector<TakenId> taken;
  for (const std::string& id : {std::string("trace"), longest}) {
    EXPECT_EQ(*taken.emplace_back(ids.Take(id)), id);
    const std::string second = *taken.emplace_back(ids.Take(id));
    EXPECT_NE(second, id);
    EXPECT_TRUE(second.starts_with(id.substr(0, 100)));
    EXPECT_TRUE(IsRequestId(second)) << second;
    EXPECT_NE(*taken.emplace_back(ids.Take(id)), second);
  }
  EXPECT_EQ(ids.size(), 6U);
  taken.clear();
  EXPECT_EQ(ids.size(), 0U);
}

}  // namespace
}  // namespace latte::request_id_test

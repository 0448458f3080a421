#include "src/http/client/sse.h"

#include <vector>

#include <gtest/gtest.h>

#include "src/base/random.h"

namespace latte::sse_test {
namespace {

struct Collected {
  std::vector<std::string> events;  // "type|id|data"
  Status status;
  int64_t comments = 0;
};

// Reads `text` in pieces whose lengths `next` chooses.
template <class Next>
Collected Read(std::string_view text, Next next, size_t most = size_t{1} << 20) {
  Collected out;
  SseReader reader(most);
  while (!text.empty() && out.status) {
    const size_t length = std::min<size_t>(text.size(), next());
    out.status = reader.Add(text.substr(0, length), [&](const SseEvent& event) {
      out.events.push_back(event.type + "|" + event.last_id + "|" + event.data);
    });
    text.remove_prefix(length);
  }
  out.comments = reader.comments();
  return out;
}

std::vector<std::string> Events(std::string_view text) {
  return Read(text, [] { return size_t{1} << 20; }).events;
}

using Texts = std::vector<std::string>;

TEST(Sse, DataOfOneAndSeveralLines) {
  EXPECT_EQ(Events("data: a\n\ndata:b\ndata: c\n\n"), (Texts{"message||a", "message||b\nc"}));
  EXPECT_EQ(Events("data:  two spaces\n\n"), Texts{"message|| two spaces"});
  EXPECT_EQ(Events("data\n\n"), Texts{"message||"});
  EXPECT_EQ(Events("data\ndata\n\n"), Texts{"message||\n"});
}

TEST(Sse, AllLineEnds) {
  const Texts expected{"message||a\nb", "message||c"};
  EXPECT_EQ(Events("data: a\ndata: b\n\ndata: c\n\n"), expected);
  EXPECT_EQ(Events("data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n"), expected);
  EXPECT_EQ(Events("data: a\rdata: b\r\rdata: c\r\r"), expected);
}

TEST(Sse, TypesIdsAndCommentsAndUnknownFields) {
  EXPECT_EQ(Events("event: error\nid: 7\ndata: x\n\ndata: y\n\n"),
            (Texts{"error|7|x", "message|7|y"}));
  const Collected kept = Read(": ping\n\n:\n\nretry: 5\nother: z\ndata: a\n\n", [] { return 99u; });
  EXPECT_EQ(kept.events, Texts{"message||a"});
  EXPECT_EQ(kept.comments, 2);
  EXPECT_EQ(Events("event: lost\n\ndata: a\n\n"), Texts{"message||a"});  // no data: no event
}

TEST(Sse, ByteOrderMarkAndUnfinishedEvents) {
  EXPECT_EQ(Events("\xef\xbb\xbf"
                   "data: a\n\n"),
            Texts{"message||a"});
  EXPECT_EQ(Events("data: a\n\ndata: b\n"), Texts{"message||a"});
}

TEST(Sse, LinesAndEventsAreBounded) {
  const auto whole = [] { return size_t{1} << 20; };
  EXPECT_TRUE(Read("data:" + std::string(95, 'x') + "\n\n", whole, 100).status);
  EXPECT_FALSE(Read("data:" + std::string(96, 'x') + "\n\n", whole, 100).status);
  EXPECT_FALSE(Read(
                   std::string(200, 'x'), [] { return 1u; }, 100)
                   .status);
  std::string many;
  for (int i = 0; i < 50; ++i) many += "data:aaaa\n";
  const Collected event = Read(many, whole, 100);
  ASSERT_FALSE(event.status);
  EXPECT_EQ(event.status.error().code, Code::kCorrupt);
}

// However a random stream is cut, its events are the same.
TEST(Sse, AnyCuttingGivesTheSameEvents) {
  const std::vector<std::string> pieces = {
      "data: a", "data:", "data", ": note", "event: e",     "id: 1",    "\r", "\n",
      "\r\n",    "\n\n",  "\r\r", "x: y",   "\xef\xbb\xbf", "\xc3\xa4", ":",  " "};
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    std::string text;
    for (int i = 0; i < 60; ++i) text += pieces[random.Below(pieces.size())];
    const Texts expected = Events(text);
    EXPECT_EQ(Read(text, [] { return 1u; }).events, expected) << seed;
    EXPECT_EQ(Read(text, [&] { return 1 + random.Below(9); }).events, expected) << seed;
  }
}

}  // namespace
}  // namespace latte::sse_test

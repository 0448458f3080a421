#include "src/engine/link/remote_messages.h"

#include <gtest/gtest.h>

#include "src/base/random.h"

namespace latte::remote_messages_test {
namespace {

FrontMessage Submit() {
  FrontMessage message{.kind = FrontMessage::Kind::kSubmit};
  message.request.tokens = {1, 2, 3};
  message.request.id = 4;
  message.request.user_data = 7;
  message.request.n = 2;
  return message;
}

RankMessage Report() {
  RankMessage message{.kind = RankMessage::Kind::kReport, .taken = 9};
  message.stats.steps = 4;
  TokenEvent event;
  event.user_data = 7;
  event.text = "a";
  message.events = {event, event};
  return message;
}

RankMessage Loaded() {
  RankMessage message{.kind = RankMessage::Kind::kLoaded};
  message.options.model = "m";
  message.options.max_tokens = 77;
  message.stats.pages_total = 3;
  return message;
}

TEST(RemoteMessages, AreReadAsTheyWereWritten) {
  for (const FrontMessage& message :
       {Submit(), FrontMessage{.kind = FrontMessage::Kind::kCancel, .id = ~uint64_t{0}},
        FrontMessage{.kind = FrontMessage::Kind::kDelivered, .bytes = 12},
        FrontMessage{.kind = FrontMessage::Kind::kSavePrefixes}}) {
    const Result<FrontMessage> read = ReadFrontMessage(ToBytes(message));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->kind, message.kind);
    EXPECT_EQ(read->id, message.id);
    EXPECT_EQ(read->bytes, message.bytes);
    EXPECT_EQ(ToBytes(*read), ToBytes(message));
  }
  for (const RankMessage& message :
       {Loaded(), Report(),
        RankMessage{.kind = RankMessage::Kind::kSaved, .error = {Code::kOk, ""}},
        RankMessage{.kind = RankMessage::Kind::kFailed, .error = {Code::kCorrupt, "no"}}}) {
    const Result<RankMessage> read = ReadRankMessage(ToBytes(message));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->kind, message.kind);
    EXPECT_EQ(ToBytes(*read), ToBytes(message));
  }
  const RankMessage report = ReadRankMessage(ToBytes(Report())).value();
  EXPECT_EQ(report.taken, 9);
  EXPECT_EQ(report.events.at(1).text, "a");
  EXPECT_EQ(ReadRankMessage(ToBytes(Loaded()))->options.max_tokens, 77);
}

TEST(RemoteMessages, APartAndMoreThanAMessageAreRefused) {
  for (const std::string& bytes : {ToBytes(Report()), ToBytes(Loaded())}) {
    for (size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(ReadRankMessage(bytes.substr(0, size))) << size;
    EXPECT_FALSE(ReadRankMessage(bytes + std::string(8, '\0')));
  }
  const std::string bytes = ToBytes(Submit());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(ReadFrontMessage(bytes.substr(0, size))) << size;
  EXPECT_FALSE(ReadFrontMessage(bytes + std::string(8, '\0')));
}

TEST(RemoteMessages, NoBytesCrashTheReaders) {
  uint64_t state = 1;
  for (const std::string& good : {ToBytes(Submit()), ToBytes(Report()), ToBytes(Loaded())}) {
    for (int round = 0; round < 2000; ++round) {
      std::string bytes = good;
      for (int change = 0; change < 3; ++change) {
        const size_t at = Mix64(++state) % bytes.size();
        bytes[at] = static_cast<char>(Mix64(++state));
      }
      const auto from_rank = ReadRankMessage(bytes);
      EXPECT_FALSE(from_rank && ToBytes(*from_rank).empty());
      const auto from_front = ReadFrontMessage(bytes);
      EXPECT_FALSE(from_front && ToBytes(*from_front).empty());
    }
  }
}

}  // namespace
}  // namespace latte::remote_messages_test

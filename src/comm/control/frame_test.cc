#include "src/comm/control/frame.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/comm/control/messages.h"

namespace latte::frame_test {
namespace {

const std::string kTwo = FrameBytes(FrameType::kHeartbeat, std::string("\x05\0\0\0\0\0\0\0", 8)) +
                         FrameBytes(FrameType::kLeave, "");

std::string Error(std::string_view bytes, size_t most_payload = 100) {
  FrameReader reader(most_payload);
  const auto frames = reader.Take(bytes);
  return frames ? "none" : frames.error().message;
}

std::string Head(uint32_t type, uint32_t length) {
  FieldWriter head;
  head.Bytes("LTC1");
  head.U32(type);
  head.U32(length);
  return head.bytes();
}

TEST(Frame, BytesAreAsDocumented) {
  EXPECT_EQ(FrameBytes(FrameType::kLost, "ab"), std::string("LTC1\x06\0\0\0\x02\0\0\0", 12) + "ab");
}

TEST(Frame, DoNotDependOnHowTheBytesAreCut) {
  const std::vector<Frame> expected = {
      {FrameType::kHeartbeat, std::string("\x05\0\0\0\0\0\0\0", 8)}, {FrameType::kLeave, ""}};
  for (size_t part = 1; part <= kTwo.size(); ++part) {
    FrameReader reader(100);
    std::vector<Frame> frames;
    for (size_t at = 0; at < kTwo.size(); at += part) {
      const auto more = reader.Take(std::string_view(kTwo).substr(at, part));
      ASSERT_TRUE(more);
      frames.insert(frames.end(), more->begin(), more->end());
    }
    EXPECT_EQ(frames, expected) << part;
  }
}

TEST(Frame, OtherProtocolsAreRefused) {
  EXPECT_EQ(Error("GET /v1/models HTTP/1.1\r\n\r\n"), "control connection: no frame of Latte");
  EXPECT_EQ(Error(std::string(12, '\0')), "control connection: no frame of Latte");
}

TEST(Frame, LengthsAndTypesAreChecked) {
  EXPECT_EQ(Error(Head(7, 0xFFFFFFFF)),
            "control connection: frame of 4294967295 bytes, at most 100 are allowed");
  EXPECT_EQ(Error(Head(7, 101)), "control connection: frame of 101 bytes, at most 100 are allowed");
  EXPECT_EQ(Error(Head(7, 100)), "none");
  EXPECT_EQ(Error(Head(0, 0)), "control connection: frame of type 0, the types are 1 to 8");
  EXPECT_EQ(Error(Head(9, 0)), "control connection: frame of type 9, the types are 1 to 8");
}

TEST(Fields, AreReadAsTheyWereWritten) {
  FieldWriter writer;
  writer.U32(0x01020304);
  writer.U64(~uint64_t{0} - 1);
  writer.Bytes("abc");
  EXPECT_EQ(writer.bytes().substr(0, 4), "\x04\x03\x02\x01");
  FieldReader reader(writer.bytes());
  EXPECT_EQ(reader.U32(), 0x01020304U);
  EXPECT_EQ(reader.U64(), ~uint64_t{0} - 1);
  EXPECT_FALSE(reader.complete());
  EXPECT_EQ(reader.Rest(), "abc");
  EXPECT_TRUE(reader.complete());
}

TEST(Fields, MissingOnesAreZeroAndNoticed) {
  FieldReader reader("abc");
  EXPECT_EQ(reader.U32(), 0U);
  EXPECT_EQ(reader.Bytes(3), "");
  EXPECT_FALSE(reader.complete());
}

TEST(Lost, KeepsRankAndTextAndDoubtsOtherRanks) {
  const RankLost lost = ReadLost(LostPayload({3, std::string(600, 'x')}), 4);
  EXPECT_EQ(lost.rank(), 3);
  EXPECT_EQ(lost.what(), std::string(512, 'x'));
  const int unknown = RankLost::kUnknown;
  EXPECT_EQ(ReadLost(LostPayload({3, ""}), 3).rank(), unknown);
  EXPECT_EQ(ReadLost(LostPayload({unknown, ""}), 3).rank(), unknown);
}

}  // namespace
}  // namespace latte::frame_test

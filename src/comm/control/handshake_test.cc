#include "src/comm/control/handshake.h"

#include <string>

#include <gtest/gtest.h>

#include "src/comm/control/secret.h"

namespace latte::handshake_test {
namespace {

const std::string kSecret(32, 's');

WorldIdentity World() { return {.world_size = 4, .epoch = 7, .config_hash = Digest("config")}; }

Frame Only(std::string_view bytes) {
  FrameReader reader(kMostHandshakeBytes);
  const auto frames = reader.Take(bytes);
  EXPECT_TRUE(frames && frames->size() == 1);
  return frames->front();
}

// The front's answer to a rank of `world`.
FrontHandshake::Answer Answer(const WorldIdentity& world, int rank,
                              const std::string& secret = kSecret, int joined = -1) {
  const WorldIdentity fronts = World();
  const FrontHandshake front(fronts, kSecret);
  RankHandshake handshake(world, rank, secret);
  const auto join = handshake.OnHello(Only(front.hello()));
  EXPECT_TRUE(join);
  FrontHandshake::Answer answer =
      front.OnFrame(Only(*join), [&](int other) { return other == joined; });
  const Status end = handshake.OnAnswer(Only(answer.frame));
  EXPECT_EQ(end.has_value(), answer.rank.has_value());
  if (!answer.rank) {
    EXPECT_EQ(end.error().message, "the front refuses rank " + std::to_string(rank) + ": " +
                                       answer.rank.error().message);
  }
  return answer;
}

std::string Refusal(const WorldIdentity& world, int rank = 2, const std::string& secret = kSecret,
                    int joined = -1) {
  const auto answer = Answer(world, rank, secret, joined);
  return answer.rank ? "none" : answer.rank.error().message;
}

TEST(Secret, DigestAndProofHaveTheirKnownValues) {
  const auto hex = [](const std::string& bytes) {
    std::string out;
    for (const char c : bytes) {
      for (const int shift : {4, 0}) out += "0123456789abcdef"[c >> shift & 15];
    }
    return out;
  };
  // FIPS 180-2 B.1; RFC 4231 test case 2.
  EXPECT_EQ(hex(Digest("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(Proof("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_TRUE(SameProof("abc", "abc"));
  EXPECT_FALSE(SameProof("abc", "abd"));
  EXPECT_FALSE(SameProof("abc", "ab"));
  EXPECT_NE(RandomBytes(32), RandomBytes(32));
}

TEST(Handshake, ARankOfTheWorldJoins) { EXPECT_EQ(*Answer(World(), 3).rank, 3); }

TEST(Handshake, RefusalsNameBothValues) {
  WorldIdentity world = World();
  world.world_size = 8;
  EXPECT_EQ(
      Refusal(world),
      "a rank may not join: its number of ranks is 8, but that of the other ranks is 4; start all "
      "ranks with the same program and options");
  world = World();
  world.epoch = 6;
  EXPECT_NE(Refusal(world).find("start number is 6, but that of the other ranks is 7"),
            std::string::npos);
  world = World();
  world.config_hash = Digest("other");
  EXPECT_NE(Refusal(world).find("configuration is d9298a10d1b0, but that of the other ranks is "),
            std::string::npos)
      << Refusal(world);
  EXPECT_EQ(Refusal(World(), 4), "a rank may not join: it is rank 4 of 4");
  EXPECT_EQ(Refusal(World(), 2, kSecret, 2),
            "a rank may not join: rank 2 has joined already; give each its own number");
}

TEST(Handshake, WithoutTheSecretNothingElseIsSaid) {
  WorldIdentity world = World();
  world.epoch = 6;
  EXPECT_EQ(Refusal(world, 2, std::string(32, 't')),
            "a rank may not join: it does not know the secret of the other ranks");
}

TEST(Handshake, AnOldRequestToJoinIsNoProof) {
  const WorldIdentity world = World();
  const FrontHandshake front(world, kSecret);
  const FrontHandshake later(world, kSecret);
  RankHandshake rank(world, 1, kSecret);
  const auto join = rank.OnHello(Only(front.hello()));
  const auto none = [](int) { return false; };
  EXPECT_TRUE(front.OnFrame(Only(*join), none).rank);
  EXPECT_FALSE(later.OnFrame(Only(*join), none).rank);
}

TEST(Handshake, EveryByteOfTheRequestIsProved) {
  const WorldIdentity world = World();
  const FrontHandshake front(world, kSecret);
  RankHandshake rank(world, 1, kSecret);
  Frame join = Only(*rank.OnHello(Only(front.hello())));
  for (size_t i = 0; i < join.payload.size(); ++i) {
    Frame changed = join;
    changed.payload[i] ^= 1;
    EXPECT_FALSE(front.OnFrame(changed, [](int) { return false; }).rank) << i;
  }
  join.payload += 'x';
  EXPECT_FALSE(front.OnFrame(join, [](int) { return false; }).rank);
  EXPECT_FALSE(front.OnFrame({FrameType::kData, "x"}, [](int) { return false; }).rank);
}

TEST(Handshake, AFrontWithoutTheSecretIsNotTrusted) {
  const WorldIdentity world = World();
  const FrontHandshake front(world, kSecret);
  RankHandshake rank(world, 1, kSecret);
  ASSERT_TRUE(rank.OnHello(Only(front.hello())));
  EXPECT_FALSE(rank.OnAnswer({FrameType::kWelcome, std::string(32, 'x')}));
  EXPECT_FALSE(rank.OnAnswer({FrameType::kHeartbeat, ""}));
  const Status refused = rank.OnAnswer({FrameType::kRefusal, "a\x1b[2Jb\nc"});
  EXPECT_EQ(refused.error().message, "the front refuses rank 1: a?[2Jb?c");
}

TEST(Handshake, AnotherVersionOfTheFrontIsNamed) {
  const WorldIdentity world = World();
  RankHandshake rank(world, 1, kSecret);
  FieldWriter hello;
  hello.U32(kControlVersion + 1);
  hello.Bytes(std::string(32, 'n'));
  const auto join = rank.OnHello({FrameType::kHello, hello.bytes()});
  EXPECT_EQ(join.error().code, Code::kUnsupported);
  EXPECT_NE(join.error().message.find("version 2 of the control protocol, this rank version 1"),
            std::string::npos);
  EXPECT_FALSE(rank.OnHello({FrameType::kHello, "short"}));
  EXPECT_FALSE(rank.OnHello({FrameType::kRefusal, hello.bytes()}));
}

}  // namespace
}  // namespace latte::handshake_test

#include "src/comm/control/front.h"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/comm/control/connection.h"
#include "src/comm/control/messages.h"
#include "src/comm/control/rank.h"
#include "src/comm/control/secret.h"
#include "tests/support/scratch_dir.h"

namespace latte::front_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kSecret(32, 's');
constexpr seconds kLong(60);  // a test that waits for it has failed

WorldIdentity World(uint32_t world_size) {
  return {.world_size = world_size, .epoch = 1, .config_hash = Digest("config")};
}

// Events of one end, as a test waits for them.
class Events {
 public:
  ControlEvents callbacks() {
    return {.lost = [this](const RankLost& lost) { Add(lost_, lost); },
            .data =
                [this](int rank, std::string bytes) {
                  Add(data_, {rank, std::move(bytes)});
                },
            .left = [this](int rank) { Add(left_, rank); },
            .refused = [this](const std::string& text) { Add(refused_, text); }};
  }
  RankLost Lost() { return Wait("lost", lost_, 1).front(); }
  std::vector<std::pair<int, std::string>> Data(size_t count) { return Wait("data", data_, count); }
  std::vector<int> Left(size_t count) { return Wait("left", left_, count); }
  std::vector<std::string> Refused(size_t count) { return Wait("refused", refused_, count); }
  size_t losses() {
    const std::lock_guard lock(mutex_);
    return lost_.size();
  }

 private:
  template <class T>
  void Add(std::vector<T>& list, const T& event) {
    const std::lock_guard lock(mutex_);
    list.push_back(event);
    changed_.notify_all();
  }
  template <class T>
  std::vector<T> Wait(const char* name, std::vector<T>& list, size_t count) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kLong, [&] { return list.size() >= count; })) {
      throw std::runtime_error(std::string("no event: ") + name +
                               ", others: " + std::to_string(lost_.size()) + " lost, " +
                               std::to_string(left_.size()) + " left");
    }
    return list;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RankLost> lost_;
  std::vector<std::pair<int, std::string>> data_;
  std::vector<int> left_;
  std::vector<std::string> refused_;
};

template <class T>
T Value(Result<T> result) {
  if (!result) throw std::runtime_error(ToString(result.error()));
  return std::move(*result);
}

struct Front {
  explicit Front(uint32_t ranks, const ControlOptions& options = {},
                 const std::string& address = "127.0.0.1:0")
      : world(World(ranks)),
        control(Value(ControlFront::Listen(address, world, kSecret, options, events.callbacks()))) {
  }

  Events events;
  WorldIdentity world;
  std::unique_ptr<ControlFront> control;
};

struct Rank {
  Rank(const Front& front, int rank, const ControlOptions& options = {})
      : control(Value(ControlRank::Join(front.control->address(), front.world, rank, kSecret,
                                        options, kLong, events.callbacks()))) {}

  Events events;
  std::unique_ptr<ControlRank> control;
};

// A rank as a process, which ends with this object.
class RankProcess {
 public:
  RankProcess(const Front& front, int rank, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {LATTE_RANK_PROCESS, front.control->address(),
                                      std::to_string(front.world.world_size), std::to_string(rank),
                                      kSecret};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, argv[0], nullptr, nullptr, argv.data(), environ), 0);
  }
  ~RankProcess() {
    if (pid_ > 0) Signal(SIGKILL), Wait();
  }
  void Signal(int signal) { kill(pid_, signal); }
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
};

// A peer that speaks as the test says.
class Peer {
 public:
  explicit Peer(const Front& front)
      : connection_(*ConnectTo(front.control->address(), kLong), 1 << 20) {}

  Frame Next() {
    for (;;) {
      auto frames = connection_.Read();
      if (!frames) throw std::runtime_error(frames.error().message);
      waiting_.insert(waiting_.end(), frames->begin(), frames->end());
      if (!waiting_.empty()) break;
      std::this_thread::sleep_for(milliseconds(1));
    }
    Frame frame = waiting_.front();
    waiting_.erase(waiting_.begin());
    return frame;
  }
  void Send(std::string_view bytes) { ASSERT_TRUE(connection_.SendBytes(bytes, 1 << 20)); }
  void Join(const WorldIdentity& world, int rank) {
    RankHandshake handshake(world, rank, kSecret);
    Send(*handshake.OnHello(Next()));
    ASSERT_TRUE(handshake.OnAnswer(Next()));
  }

 private:
  Connection connection_;
  std::vector<Frame> waiting_;
};

TEST(Control, RanksJoinAndBytesGoBothWays) {
  Front front(2);
  Rank first(front, 1);
  Rank second(front, 0);
  ASSERT_TRUE(front.control->WaitForRanks(kLong));
  front.control->Send(1, "to one");
  front.control->Send(0, std::string(1 << 20, 'z'));
  first.control->Send("from one");
  EXPECT_EQ(first.events.Data(1)[0], std::make_pair(RankLost::kUnknown + 0, std::string("to one")));
  EXPECT_EQ(second.events.Data(1)[0].second, std::string(1 << 20, 'z'));
  EXPECT_EQ(front.events.Data(1)[0], std::make_pair(1, std::string("from one")));
}

TEST(Control, LeavingIsNoLoss) {
  Front front(2);
  Rank stays(front, 0);
  {
    Rank leaves(front, 1);
    ASSERT_TRUE(front.control->WaitForRanks(kLong));
  }
  EXPECT_EQ(front.events.Left(1), std::vector{1});
  front.control.reset();
  EXPECT_EQ(stays.events.Left(1), std::vector{RankLost::kUnknown + 0});
  EXPECT_EQ(front.events.losses() + stays.events.losses(), 0U);
}

TEST(Control, RanksThatDoNotJoinAreNamed) {
  Front front(3);
  Rank rank(front, 1);
  const Status waited = front.control->WaitForRanks(milliseconds(20));
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().message,
            "of 3 ranks, 0, 2 did not join before the deadline; look there for the cause");
}

TEST(Control, StrangersAreRefusedOnceAndDisturbNothing) {
  Front front(1, {.handshake = seconds(2)});
  for (int i = 0; i < 100; ++i) Peer(front).Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  Peer(front).Send(RandomBytes(1000));
  EXPECT_EQ(front.events.Refused(1)[0], "control connection: no frame of Latte");
  Peer silent(front);
  EXPECT_EQ(front.events.Refused(2)[1], "control connection: the request to join is late");
  Rank rank(front, 0);
  EXPECT_TRUE(front.control->WaitForRanks(kLong));
  EXPECT_EQ(front.events.Refused(2).size(), 2U);
}

TEST(Control, AFrameThatClaims4GiBIsRefused) {
  Front front(1);
  Peer peer(front);
  peer.Send(std::string("LTC1\x02\0\0\0\xFF\xFF\xFF\xFF", 12));
  EXPECT_EQ(front.events.Refused(1)[0],
            "control connection: frame of 4294967295 bytes, at most 512 are allowed");
}

// Joins with what differs; the front's text.
std::string Refusal(Front& front, const WorldIdentity& world, int rank, const std::string& secret) {
  const auto joined =
      ControlRank::Join(front.control->address(), world, rank, secret, {}, kLong, {});
  return joined ? "none" : joined.error().message;
}

TEST(Control, ARankThatDoesNotBelongLearnsWhy) {
  Front front(2);
  Rank rank(front, 0);
  ASSERT_NE(Refusal(front, front.world, 1, std::string(32, 't')).find("secret"), std::string::npos);
  EXPECT_NE(Refusal(front, front.world, 0, kSecret).find("rank 0 has joined already"),
            std::string::npos);
  WorldIdentity old = front.world;
  old.epoch = 0;
  EXPECT_NE(Refusal(front, old, 1, kSecret).find("start number is 0, but that"), std::string::npos);
  WorldIdentity other = front.world;
  other.config_hash = Digest("fp8");
  EXPECT_NE(Refusal(front, other, 1, kSecret).find("configuration"), std::string::npos);
  Rank last(front, 1);
  EXPECT_TRUE(front.control->WaitForRanks(kLong));
}

TEST(Control, AKilledRankIsNamedToAll) {
  Front front(2);
  Rank stays(front, 0);
  RankProcess dies(front, 1);
  ASSERT_TRUE(front.control->WaitForRanks(kLong));
  dies.Signal(SIGKILL);
  const RankLost lost = front.events.Lost();
  EXPECT_EQ(lost.rank(), 1);
  EXPECT_STREQ(lost.what(), "rank 1 is lost: it has closed the connection");
  EXPECT_EQ(stays.events.Lost().rank(), 1);
  EXPECT_STREQ(stays.events.Lost().what(), lost.what());
  EXPECT_FALSE(front.control->WaitForRanks(kLong));
}

TEST(Control, AStoppedRankIsNamedToAll) {
  Front front(2);
  RankProcess stays(front, 0);
  RankProcess stops(front, 1);
  ASSERT_TRUE(front.control->WaitForRanks(kLong));
  stops.Signal(SIGSTOP);
  const RankLost lost = front.events.Lost();
  EXPECT_EQ(lost.rank(), 1);
  EXPECT_STREQ(lost.what(),
               "rank 1 is lost: no heartbeat for 3 s; the process is stopped, or the network is "
               "cut");
  EXPECT_EQ(stays.Wait(), 0);  // it has learned of the loss
}

TEST(Control, ARankNamesTheCulpritBeforeItEnds) {
  Front front(3);
  Rank third(front, 2);
  RankProcess hangs(front, 1);
  RankProcess reports(front, 0, {"1"});
  EXPECT_EQ(front.events.Lost().rank(), 1);
  EXPECT_STREQ(front.events.Lost().what(), "it did not take part");
  EXPECT_EQ(third.events.Lost().rank(), 1);
}

TEST(Control, TheFirstLossStays) {
  Front front(3);
  Peer peer(front);
  peer.Join(front.world, 0);
  peer.Send(FrameBytes(FrameType::kLost, LostPayload({2, "first"})));
  peer.Send(FrameBytes(FrameType::kLost, LostPayload({1, "second"})));
  peer.Send(FrameBytes(FrameType::kData, "end"));
  front.events.Data(1);
  EXPECT_EQ(front.events.losses(), 1U);
  EXPECT_EQ(front.events.Lost().rank(), 2);
  Rank late(front, 1);
  EXPECT_EQ(late.events.Lost().rank(), 2);
}

// A front that sends what the test says after a welcome, in the same packet, and then dies.
RankLost LostAfter(const std::string& bytes, std::vector<std::pair<int, std::string>>* data) {
  Listener listener = Value(ListenOn("127.0.0.1:0"));
  const WorldIdentity world = World(1);
  Events events;
  std::unique_ptr<ControlRank> rank;
  std::thread joining([&] {
    rank = Value(
        ControlRank::Join(listener.address, world, 0, kSecret, {}, kLong, events.callbacks()));
  });
  {
    Socket accepted;
    while (accepted.fd() < 0) accepted = Accept(listener.socket);
    Connection connection(std::move(accepted), kMostHandshakeBytes);
    const FrontHandshake front(world, kSecret);
    EXPECT_TRUE(connection.SendBytes(front.hello(), 1 << 20));
    std::vector<Frame> frames;
    while (frames.empty()) frames = Value(connection.Read());
    const auto answer = front.OnFrame(frames.front(), [](int) { return false; });
    EXPECT_TRUE(connection.SendBytes(answer.frame + bytes, 1 << 20));
    joining.join();
    if (data != nullptr) *data = events.Data(1);
  }
  return events.Lost();
}

TEST(Control, ADeadFrontEndsItsRanks) {
  const RankLost lost = LostAfter("", nullptr);
  EXPECT_EQ(lost.rank(), RankLost::kUnknown + 0);
  EXPECT_STREQ(lost.what(), "the front is lost: it has closed the connection");
}

TEST(Control, FramesThatArriveWithTheWelcomeAreRead) {
  std::vector<std::pair<int, std::string>> data;
  LostAfter(FrameBytes(FrameType::kHeartbeat, "") + FrameBytes(FrameType::kData, "early"), &data);
  EXPECT_EQ(data[0].second, "early");
}

TEST(Control, ARankThatDoesNotReadStopsNothing) {
  Front front(2, {.interval = seconds(60), .most_waiting = 1 << 20});
  Rank reads(front, 0);
  Peer deaf(front);
  deaf.Join(front.world, 1);
  ASSERT_TRUE(front.control->WaitForRanks(kLong));
  for (int i = 0; i < 64; ++i) front.control->Send(1, std::string(256 << 10, 'x'));
  front.control->Send(0, "still here");
  EXPECT_EQ(front.events.Lost().rank(), 1);
  EXPECT_EQ(reads.events.Data(1)[0].second, "still here");
}

TEST(Control, AMemberThatSendsNonsenseIsLost) {
  Front front(2);
  Rank stays(front, 0);
  Peer peer(front);
  peer.Join(front.world, 1);
  peer.Send(FrameBytes(FrameType::kWelcome, ""));
  EXPECT_STREQ(front.events.Lost().what(),
               "rank 1 is lost: it sent a frame that ranks do not send");
  EXPECT_EQ(stays.events.Lost().rank(), 1);
}

TEST(Control, UnixSocketsAreOfThisUserOnly) {
  const latte::testing_support::ScratchDir dir;
  const std::string path = dir.File("front.sock");
  { Front first(1, {}, "unix:" + path); }
  Front front(1, {}, "unix:" + path);  // over the old socket
  struct stat info = {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  Rank rank(front, 0);
  EXPECT_TRUE(front.control->WaitForRanks(kLong));
}

TEST(Control, AddressesAreChecked) {
  for (const char* address : {"", "localhost", ":80", "127.0.0.1:", "127.0.0.1:70000", "unix:"}) {
    const auto front = ControlFront::Listen(address, World(1), kSecret, {}, {});
    ASSERT_FALSE(front) << address;
    EXPECT_EQ(front.error().code, Code::kInvalidArgument) << front.error().message;
  }
  EXPECT_EQ(ControlFront::Listen("192.0.2.1:1", World(1), kSecret, {}, {}).error().code,
            Code::kUnavailable);
  const auto nobody =
      ControlRank::Join("127.0.0.1:1", World(1), 0, kSecret, {}, milliseconds(60), {});
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().message,
            "cannot connect to the control address 127.0.0.1:1: Connection refused");
}

struct Pair {
  explicit Pair(const ControlOptions& options = {}) {
    SocketPair pair = Value(MakeSocketPair());
    far = std::move(pair.far);
    control = Value(
        ControlFront::Over(std::move(pair.near), World(1), kSecret, options, events.callbacks()));
  }
  std::unique_ptr<ControlRank> Join(Events& rank) {
    const int fd = dup(far.fd());
    far.Close();
    return Value(ControlRank::Join("fd:" + std::to_string(fd), World(1), 0, kSecret, {}, kLong,
                                   rank.callbacks()));
  }

  Events events;
  Socket far;
  std::unique_ptr<ControlFront> control;
};

TEST(ControlPair, BytesGoBothWaysAndTheEndIsTold) {
  Pair front;
  Events events;
  auto rank = front.Join(events);
  EXPECT_TRUE(front.control->WaitForRanks(kLong));
  EXPECT_EQ(front.control->address(), "");
  front.control->Send(0, "there");
  EXPECT_EQ(events.Data(1).front().second, "there");
  rank->Send("and back");
  EXPECT_EQ(front.events.Data(1).front().second, "and back");
  rank.reset();
  EXPECT_EQ(front.events.Left(1).front(), 0);
}

TEST(ControlPair, TheFrontsEndIsNoLoss) {
  Pair front;
  Events events;
  const auto rank = front.Join(events);
  front.control.reset();
  EXPECT_EQ(events.Left(1).front(), RankLost::kUnknown);
  EXPECT_EQ(events.losses(), 0U);
}

TEST(ControlPair, AMemberThatJoinsLateIsRefused) {
  Pair front({.handshake = milliseconds(50)});
  EXPECT_EQ(front.events.Refused(1).front(), "control connection: the request to join is late");
}

TEST(ControlPair, WhatIsNoSocketIsRefused) {
  const int pipe_end = dup(STDERR_FILENO);
  for (const std::string& text : {std::string("fd:"), std::string("fd:-1"), std::string("fd:3x"),
                                  std::string("fd:1000000"), "fd:" + std::to_string(pipe_end)}) {
    const auto socket = ConnectTo(text, kLong);
    ASSERT_FALSE(socket) << text;
    EXPECT_EQ(socket.error().message,
              "control address " + text +
                  ": expected the number of a socket that this process has inherited");
  }
  close(pipe_end);
}

}  // namespace
}  // namespace latte::front_test

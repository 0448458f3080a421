#include "src/comm/control/front.h"

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include "src/base/check.h"
#include "src/base/limits/out_of_memory.h"
#include "src/comm/control/messages.h"

namespace latte {
namespace {

using Clock = Connection::Clock;

constexpr size_t kMostStrangers = 32;  // connections that have not joined; the oldest gives way
constexpr size_t kMostRefusals = 16;

struct Stranger {
  Connection connection;
  std::unique_ptr<FrontHandshake> handshake;
};

struct GroupMember {
  std::optional<Connection> connection;  // empty: not yet, or no longer
  bool has_joined = false;
};

}  // namespace

struct ControlFront::State {
  State(Listener listening, WorldIdentity identity, std::string key, const ControlOptions& limits,
        ControlEvents callbacks)
      : listener(std::move(listening)),
        world(std::move(identity)),
        secret(std::move(key)),
        options(limits),
        events(std::move(callbacks)),
        members(world.world_size) {}

  void Run();
  void RunOnce();
  void ReadAll();
  void ReadStrangers();
  bool Keep(Stranger& stranger);
  void ReadMember(int rank);
  void OnFrame(int rank, Frame frame);
  void AcceptAll();
  void Greet(Socket socket);
  void SendWaiting();
  void Beat(Clock::time_point now);
  void Tell(int rank, FrameType type, std::string_view payload);
  void Lose(const RankLost& lost);
  void Drop(int rank, const std::string& why);
  void Refuse(const std::string& text);
  std::vector<int> Missing() const;

  const Listener listener;
  const WorldIdentity world;
  const std::string secret;
  const ControlOptions options;
  const ControlEvents events;
  const Socket wakeup = MakeWakeup();

  // Used by the thread alone.
  std::vector<Stranger> strangers;
  std::vector<GroupMember> members;
  std::set<std::string> refusals;
  Clock::time_point next_beat = Clock::now();
  bool may_accept = true;  // file descriptors have not run out

  mutable std::mutex mutex;  // guards the rest
  std::condition_variable changed;
  bool stopping = false;
  std::vector<std::pair<int, std::string>> waiting;  // rank, bytes to send
  std::set<int> joined;
  std::optional<RankLost> lost;  // written by the thread

  std::thread thread;
};

Result<std::unique_ptr<ControlFront>> ControlFront::Listen(const std::string& address,
                                                           const WorldIdentity& world,
                                                           const std::string& secret,
                                                           const ControlOptions& options,
                                                           ControlEvents events) {
  LATTE_ASSIGN_OR_RETURN(Listener listener, ListenOn(address));
  return CatchExhaustion([&] {
    return Start(
        std::make_unique<State>(std::move(listener), world, secret, options, std::move(events)));
  });
}

Result<std::unique_ptr<ControlFront>> ControlFront::Over(Socket connection,
                                                         const WorldIdentity& world,
                                                         const std::string& secret,
                                                         const ControlOptions& options,
                                                         ControlEvents events) {
  return CatchExhaustion([&] {
    auto state = std::make_unique<State>(Listener{}, world, secret, options, std::move(events));
    state->Greet(std::move(connection));
    return Start(std::move(state));
  });
}

Result<std::unique_ptr<ControlFront>> ControlFront::Start(std::unique_ptr<State> state) {
  State& running = *state;
  running.thread = std::thread([&running] { running.Run(); });
  return std::unique_ptr<ControlFront>(new ControlFront(std::move(state)));
}

ControlFront::ControlFront(std::unique_ptr<State> state) : state_(std::move(state)) {}

ControlFront::~ControlFront() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  Wake(state_->wakeup);
  state_->thread.join();
}

const std::string& ControlFront::address() const { return state_->listener.address; }

Status ControlFront::WaitForRanks(std::chrono::milliseconds deadline) {
  std::unique_lock lock(state_->mutex);
  const auto ready = [&] {
    return state_->lost || state_->joined.size() == state_->world.world_size;
  };
  const bool in_time = state_->changed.wait_for(lock, deadline, ready);
  if (state_->lost) return Fail(Code::kUnavailable, state_->lost->what());
  if (in_time) return {};
  return Fail(
      Code::kUnavailable,
      fmt::format("of {} ranks, {} did not join before the deadline; look there for the cause",
                  state_->world.world_size, fmt::join(state_->Missing(), ", ")));
}

void ControlFront::Send(int rank, std::string bytes) {
  LATTE_CHECK(bytes.size() <= state_->options.most_payload, "{} bytes", bytes.size());
  {
    const std::lock_guard lock(state_->mutex);
    state_->waiting.emplace_back(rank, std::move(bytes));
  }
  Wake(state_->wakeup);
}

void ControlFront::State::Run() {
  for (;;) {
    {
      const std::lock_guard lock(mutex);
      if (stopping) break;
    }
    try {
      RunOnce();
    } catch (const std::bad_alloc&) {
      Lose({RankLost::kUnknown, "the front has no memory for messages of its ranks"});
    }
  }
  SendWaiting();
  for (size_t rank = 0; rank < members.size(); ++rank) {
    Tell(static_cast<int>(rank), FrameType::kLeave, {});
  }
  const Connection::Clock::time_point end = Connection::Clock::now() + options.interval;
  for (GroupMember& member : members)
    if (member.connection) member.connection->EndSending();
  for (GroupMember& member : members)
    if (member.connection) member.connection->AwaitEnd(end);
}

// Judges by the time before it reads: if this process was stopped, heartbeats are waiting.
void ControlFront::State::RunOnce() {
  const int listening = may_accept ? listener.socket.fd() : -1;
  std::vector<pollfd> polled = {{wakeup.fd(), POLLIN, 0}, {listening, POLLIN, 0}};
  const auto add = [&](const Connection& connection) {
    const int output = connection.has_output() ? POLLOUT : 0;
    polled.push_back({connection.fd(), static_cast<short>(POLLIN | output), 0});
  };
  for (const Stranger& stranger : strangers) add(stranger.connection);
  for (const GroupMember& member : members) {
    if (member.connection) add(*member.connection);
  }
  poll(polled.data(), polled.size(), MillisecondsUntil(next_beat));
  Drain(wakeup);
  const Clock::time_point now = Clock::now();
  ReadAll();
  AcceptAll();
  SendWaiting();
  if (now >= next_beat) Beat(now);
}

void ControlFront::State::ReadAll() {
  ReadStrangers();
  for (size_t rank = 0; rank < members.size(); ++rank) ReadMember(static_cast<int>(rank));
}

void ControlFront::State::ReadStrangers() {
  std::vector<Stranger> kept;
  for (Stranger& stranger : strangers) {
    if (Keep(stranger)) kept.push_back(std::move(stranger));
  }
  strangers = std::move(kept);
}

// Whether the stranger stays one: it has not joined and may still.
bool ControlFront::State::Keep(Stranger& stranger) {
  Result<std::vector<Frame>> frames = stranger.connection.Read();
  if (!frames) {
    if (frames.error().code == Code::kCorrupt) Refuse(frames.error().message);
    return false;
  }
  if (frames->empty()) {
    if (Clock::now() - stranger.connection.opened() < options.handshake) return true;
    Refuse("control connection: the request to join is late");
    return false;
  }
  const FrontHandshake::Answer answer = stranger.handshake->OnFrame(
      frames->front(), [&](int rank) { return members[static_cast<size_t>(rank)].has_joined; });
  if (!stranger.connection.SendBytes(answer.frame, options.most_waiting)) return false;
  if (!answer.rank) {
    Refuse(answer.rank.error().message);
    return false;
  }
  GroupMember& member = members[static_cast<size_t>(*answer.rank)];
  member.has_joined = true;
  member.connection = std::move(stranger.connection);
  member.connection->SetMostPayload(options.most_payload);
  {
    const std::lock_guard lock(mutex);
    joined.insert(*answer.rank);
    changed.notify_all();
  }
  if (lost) Tell(*answer.rank, FrameType::kLost, LostPayload(*lost));
  return false;
}

void ControlFront::State::ReadMember(int rank) {
  GroupMember& member = members[static_cast<size_t>(rank)];
  if (!member.connection) return;
  Result<std::vector<Frame>> frames = member.connection->Read();
  if (!frames) return Drop(rank, frames.error().message);
  for (Frame& frame : *frames) {
    if (member.connection) OnFrame(rank, std::move(frame));
  }
}

void ControlFront::State::OnFrame(int rank, Frame frame) {
  switch (frame.type) {
    case FrameType::kHeartbeat:
      return;
    case FrameType::kData:
      if (events.data) events.data(rank, std::move(frame.payload));
      return;
    case FrameType::kLost:
      return Lose(ReadLost(frame.payload, world.world_size));
    case FrameType::kLeave:
      members[static_cast<size_t>(rank)].connection.reset();
      if (events.left) events.left(rank);
      return;
    default:
      Drop(rank, "it sent a frame that ranks do not send");
  }
}

void ControlFront::State::AcceptAll() {
  while (listener.socket.fd() >= 0) {
    Socket socket = Accept(listener.socket);
    if (socket.fd() < 0) {
      may_accept = errno != EMFILE && errno != ENFILE;  // or the listener stays readable
      return;
    }
    if (strangers.size() == kMostStrangers) strangers.erase(strangers.begin());
    Greet(std::move(socket));
  }
}

void ControlFront::State::Greet(Socket socket) {
  Stranger stranger{Connection(std::move(socket), kMostHandshakeBytes),
                    std::make_unique<FrontHandshake>(world, secret)};
  if (stranger.connection.SendBytes(stranger.handshake->hello(), options.most_waiting))
    strangers.push_back(std::move(stranger));
}

void ControlFront::State::SendWaiting() {
  std::vector<std::pair<int, std::string>> taken;
  {
    const std::lock_guard lock(mutex);
    taken.swap(waiting);
  }
  for (const auto& [rank, bytes] : taken) Tell(rank, FrameType::kData, bytes);
  for (GroupMember& member : members) {
    if (member.connection) member.connection->Flush();
  }
}

void ControlFront::State::Beat(Clock::time_point now) {
  next_beat = now + options.interval;
  may_accept = true;
  for (size_t i = 0; i < members.size(); ++i) {
    const int rank = static_cast<int>(i);
    Tell(rank, FrameType::kHeartbeat, "");
    const GroupMember& member = members[i];
    if (member.connection && now - member.connection->last_heard() > options.patience()) {
      Drop(rank, SilenceText(options));
    }
  }
}

void ControlFront::State::Tell(int rank, FrameType type, std::string_view payload) {
  GroupMember& member = members[static_cast<size_t>(rank)];
  if (!member.connection) return;
  if (const Status sent = member.connection->Send(type, payload, options.most_waiting); !sent) {
    Drop(rank, sent.error().message);
  }
}

void ControlFront::State::Drop(int rank, const std::string& why) {
  members[static_cast<size_t>(rank)].connection.reset();
  Lose({rank, fmt::format("rank {} is lost: {}", rank, why)});
}

void ControlFront::State::Lose(const RankLost& first) {
  {
    const std::lock_guard lock(mutex);
    if (lost) return;
    lost = first;
    changed.notify_all();
  }
  for (size_t rank = 0; rank < members.size(); ++rank) {
    Tell(static_cast<int>(rank), FrameType::kLost, LostPayload(first));
  }
  if (events.lost) events.lost(first);
}

void ControlFront::State::Refuse(const std::string& text) {
  if (refusals.size() == kMostRefusals || !refusals.insert(text).second) return;
  if (events.refused) events.refused(text);
}

std::vector<int> ControlFront::State::Missing() const {
  std::vector<int> missing;
  for (int rank = 0; rank < static_cast<int>(world.world_size); ++rank) {
    if (!joined.contains(rank)) missing.push_back(rank);
  }
  return missing;
}

}  // namespace latte

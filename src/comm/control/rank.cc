#include "src/comm/control/rank.h"

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <poll.h>

#include "src/base/check.h"
#include "src/base/limits/out_of_memory.h"
#include "src/comm/control/messages.h"

namespace latte {
namespace {

using Clock = Connection::Clock;

struct Output {
  FrameType type;
  std::string payload;
};

// The next frame of the front, before the thread runs. Those that follow it stay in `arrived`.
Result<Frame> AwaitFrame(Connection& connection, std::vector<Frame>& arrived,
                         Clock::time_point end) {
  while (arrived.empty()) {
    const int left = MillisecondsUntil(end);
    pollfd wait = {connection.fd(), POLLIN, 0};
    if (poll(&wait, 1, left) == 0 && left == 0) {
      return Fail(Code::kUnavailable, "control connection: the front does not answer in time");
    }
    Result<std::vector<Frame>> frames = connection.Read();
    if (!frames) {
      return Fail(frames.error().code,
                  fmt::format("control connection to the front: {}", frames.error().message));
    }
    arrived = std::move(*frames);
  }
  Frame frame = std::move(arrived.front());
  arrived.erase(arrived.begin());
  return frame;
}

}  // namespace

struct ControlRank::State {
  State(Connection joined, std::vector<Frame> frames, uint32_t ranks, const ControlOptions& limits,
        ControlEvents callbacks)
      : connection(std::move(joined)),
        arrived(std::move(frames)),
        world_size(ranks),
        options(limits),
        events(std::move(callbacks)) {}

  void Run();
  void RunOnce();
  void ReadAll();
  void SendWaiting();
  void OnFrame(Frame frame);
  void Check(const Status& sent);
  void Lose(const RankLost& lost);
  void Put(FrameType type, std::string payload);

  Connection connection;
  std::vector<Frame> arrived;  // not handled yet
  const uint32_t world_size;
  const ControlOptions options;
  const ControlEvents events;
  const Socket wakeup = MakeWakeup();

  // Used by the thread alone.
  Clock::time_point next_beat = Clock::now();
  bool open = true;  // the front is there
  bool has_lost = false;

  std::mutex mutex;  // guards the rest
  std::condition_variable changed;
  bool stopping = false;
  std::vector<Output> waiting;
  bool unsent = false;  // some of it may not have been sent

  std::thread thread;
};

Result<std::unique_ptr<ControlRank>> ControlRank::Join(
    const std::string& address, const WorldIdentity& world, int rank, const std::string& secret,
    const ControlOptions& options, std::chrono::milliseconds deadline, ControlEvents events) {
  const Clock::time_point end = Clock::now() + deadline;
  LATTE_ASSIGN_OR_RETURN(Socket socket, ConnectTo(address, deadline));
  Connection connection(std::move(socket), kMostHandshakeBytes);
  RankHandshake handshake(world, rank, secret);
  std::vector<Frame> arrived;
  LATTE_ASSIGN_OR_RETURN(const Frame hello, AwaitFrame(connection, arrived, end));
  LATTE_ASSIGN_OR_RETURN(const std::string join, handshake.OnHello(hello));
  LATTE_RETURN_IF_ERROR(connection.SendBytes(join, options.most_waiting));
  connection.SetMostPayload(options.most_payload);
  LATTE_ASSIGN_OR_RETURN(const Frame answer, AwaitFrame(connection, arrived, end));
  LATTE_RETURN_IF_ERROR(handshake.OnAnswer(answer));
  return CatchExhaustion([&]() -> Result<std::unique_ptr<ControlRank>> {
    auto state = std::make_unique<State>(std::move(connection), std::move(arrived),
                                         world.world_size, options, std::move(events));
    State& running = *state;
    running.thread = std::thread([&running] { running.Run(); });
    return std::unique_ptr<ControlRank>(new ControlRank(std::move(state)));
  });
}

ControlRank::ControlRank(std::unique_ptr<State> state) : state_(std::move(state)) {}

ControlRank::~ControlRank() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  Wake(state_->wakeup);
  state_->thread.join();
}

void ControlRank::Send(std::string bytes) {
  LATTE_CHECK(bytes.size() <= state_->options.most_payload, "{} bytes", bytes.size());
  state_->Put(FrameType::kData, std::move(bytes));
}

void ControlRank::Report(const RankLost& lost) {
  state_->Put(FrameType::kLost, LostPayload(lost));
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, state_->options.interval, [&] { return !state_->unsent; });
}

void ControlRank::State::Put(FrameType type, std::string payload) {
  {
    const std::lock_guard lock(mutex);
    waiting.push_back({type, std::move(payload)});
    unsent = true;
  }
  Wake(wakeup);
}

void ControlRank::State::Run() {
  for (;;) {
    {
      const std::lock_guard lock(mutex);
      if (stopping) break;
    }
    try {
      RunOnce();
    } catch (const std::bad_alloc&) {
      Lose({RankLost::kUnknown, "this rank has no memory for messages of the front"});
    }
  }
  SendWaiting();
  if (open) Check(connection.Send(FrameType::kLeave, {}, options.most_waiting));
  connection.EndSending();
  connection.AwaitEnd(Clock::now() + options.interval);
}

// Judges by the time before it reads: if this process was stopped, heartbeats are waiting.
void ControlRank::State::RunOnce() {
  const int output = connection.has_output() ? POLLOUT : 0;
  pollfd polled[] = {{wakeup.fd(), POLLIN, 0},
                     {open ? connection.fd() : -1, static_cast<short>(POLLIN | output), 0}};
  poll(polled, std::size(polled), MillisecondsUntil(next_beat));
  Drain(wakeup);
  const Clock::time_point now = Clock::now();
  ReadAll();
  SendWaiting();
  if (now < next_beat) return;
  next_beat = now + options.interval;
  if (open) Check(connection.Send(FrameType::kHeartbeat, "", options.most_waiting));
  if (open && now - connection.last_heard() > options.patience()) {
    Check(Fail(Code::kUnavailable, SilenceText(options)));
  }
}

void ControlRank::State::ReadAll() {
  std::vector<Frame> frames = std::exchange(arrived, {});
  if (open) {
    Result<std::vector<Frame>> more = connection.Read();
    if (!more) Check(Fail(more.error().code, more.error().message));
    if (more) std::move(more->begin(), more->end(), std::back_inserter(frames));
  }
  for (Frame& frame : frames) {
    if (open) OnFrame(std::move(frame));
  }
}

void ControlRank::State::SendWaiting() {
  std::vector<Output> taken;
  {
    const std::lock_guard lock(mutex);
    taken.swap(waiting);
  }
  for (const Output& output : taken) {
    if (open) Check(connection.Send(output.type, output.payload, options.most_waiting));
  }
  if (open) connection.Flush();
  const std::lock_guard lock(mutex);
  unsent = open && connection.has_output();
  changed.notify_all();
}

void ControlRank::State::OnFrame(Frame frame) {
  switch (frame.type) {
    case FrameType::kHeartbeat:
      return;
    case FrameType::kData:
      if (events.data) events.data(RankLost::kUnknown, std::move(frame.payload));
      return;
    case FrameType::kLost:
      return Lose(ReadLost(frame.payload, world_size));
    case FrameType::kLeave:
      open = false;
      connection.EndSending();
      if (events.left) events.left(RankLost::kUnknown);
      return;
    default:
      Check(Corrupt("it sent a frame that fronts do not send"));
  }
}

void ControlRank::State::Check(const Status& sent) {
  if (sent || !open) return;
  open = false;
  Lose({RankLost::kUnknown, fmt::format("the front is lost: {}", sent.error().message)});
}

void ControlRank::State::Lose(const RankLost& lost) {
  if (has_lost) return;
  has_lost = true;
  if (events.lost) events.lost(lost);
}

}  // namespace latte

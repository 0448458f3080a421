#include "src/engine/link/remote_engine.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "src/base/limits/out_of_memory.h"
#include "src/base/strings.h"
#include "src/base/timer.h"
#include "src/comm/control/secret.h"
#include "src/engine/request/inbox.h"
#include "src/engine/request/request_state.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kPoll(100);
// When a rank is lost because its launcher was killed, both are known after this time.
constexpr milliseconds kSettling(300);
// Ranks end by themselves when one is lost, and their launcher does; a signal meanwhile would
// confuse it.
constexpr milliseconds kAborting(2000);
constexpr size_t kSecretBytes = 32;
constexpr std::string_view kOnlyRank = "rank 0";
constexpr std::string_view kAlone = "the engine's process";

// A folder that only this user may enter, until it is destroyed.
class PrivateFolder {
 public:
  ~PrivateFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  Status Make() {
    std::error_code error;
    std::string path = (std::filesystem::temp_directory_path(error) / "latte-XXXXXX").string();
    if (error || mkdtemp(path.data()) == nullptr)
      return Fail(Code::kUnavailable,
                  fmt::format("{}: cannot make a folder there, for the socket that ranks "
                              "connect to: {}",
                              path, error ? error.message() : std::strerror(errno)));
    path_ = path;
    return {};
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Status Stopped() { return Fail(Code::kCancelled, "the server is shutting down"); }

// Ranks get tokens, so that no prompt is made into tokens twice.
Request WithTokens(RequestState& state) {
  Request out = std::move(state.request);
  Sequence& sequence = state.outputs.front()->sequence;
  out.tokens = std::move(sequence.tokens);
  out.cache_salt = std::move(sequence.spec.salt);
  if (!out.echo) out.prompt.clear();
  return out;
}

}  // namespace

Result<std::unique_ptr<RemoteEngine>> RemoteEngine::Start(const RemoteOptions& options,
                                                          const ModelFiles& files,
                                                          const RankStarter& start,
                                                          const std::stop_token& stop) {
  return CatchExhaustion([&]() -> Result<std::unique_ptr<RemoteEngine>> {
    std::unique_ptr<RemoteEngine> engine(new RemoteEngine(options, files));
    LATTE_RETURN_IF_ERROR(engine->Launch(start, stop));
    LATTE_RETURN_IF_ERROR(engine->AwaitLoaded(stop));
    return engine;
  });
}

// Until all ranks have joined.
Status RemoteEngine::Launch(const RankStarter& start, const std::stop_token& stop) {
  FrontAddress address{.secret = InHex(RandomBytes(kSecretBytes)),
                       .config_hash = options_.config_hash};
  if (options_.ranks == 1) {
    LATTE_RETURN_IF_ERROR(LaunchOne(std::move(address), start));
    return AwaitJoined(stop);
  }
  PrivateFolder folder;
  LATTE_RETURN_IF_ERROR(folder.Make());
  address.address = fmt::format("unix:{}/front", folder.path());
  LATTE_ASSIGN_OR_RETURN(front_, ControlFront::Listen(address.address, Identity(), address.secret,
                                                      options_.control, Events()));
  LATTE_ASSIGN_OR_RETURN(processes_, start(address));
  return AwaitJoined(stop);
}

Status RemoteEngine::LaunchOne(FrontAddress address, const RankStarter& start) {
  LATTE_ASSIGN_OR_RETURN(SocketPair pair, MakeSocketPair());
  ControlOptions control = options_.control;
  control.handshake = options_.joining;  // the connection is there before the process
  LATTE_ASSIGN_OR_RETURN(front_, ControlFront::Over(std::move(pair.near), Identity(),
                                                    address.secret, control, Events()));
  address.address = fmt::format("fd:{}", ChildProcesses::kInherited);
  address.inherited = pair.far.fd();
  LATTE_ASSIGN_OR_RETURN(processes_, start(address));
  return {};
}

WorldIdentity RemoteEngine::Identity() const {
  return {.world_size = static_cast<uint32_t>(options_.ranks),
          .epoch = 0,  // every start has an address and a secret of its own
          .config_hash = options_.config_hash};
}

ControlEvents RemoteEngine::Events() {
  ControlEvents events;
  events.lost = [this](const RankLost& lost) {
    std::string why = lost.what();
    if (options_.ranks == 1 && why.starts_with(kOnlyRank))
      why.replace(0, kOnlyRank.size(), NameOf(0));
    SetFailure(Code::kUnavailable, std::move(why));
  };
  events.data = [this](int rank, const std::string& bytes) { OnMessage(rank, bytes); };
  events.left = [this](int rank) { SetFailure(Code::kUnavailable, NameOf(rank) + " has ended"); };
  return events;
}

std::string RemoteEngine::NameOf(int rank) const {
  return options_.ranks == 1 ? std::string(kAlone) : fmt::format("rank {}", rank);
}

std::string RemoteEngine::LauncherName() const {
  return std::string(options_.ranks == 1 ? kAlone : "the launcher of the ranks");
}

Status RemoteEngine::AwaitJoined(const std::stop_token& stop) {
  const Clock::time_point late = Clock::now() + options_.joining;
  for (;;) {
    const Status joined = front_->WaitForRanks(kPoll);
    if (joined) return {};
    if (stop.stop_requested()) return Stopped();
    LATTE_RETURN_IF_ERROR(CheckRanks());
    if (Clock::now() < late) continue;
    if (options_.ranks > 1) return joined;
    return Fail(Code::kUnavailable, NameOf(0) + " did not join before the deadline");
  }
}

Status RemoteEngine::AwaitLoaded(const std::stop_token& stop) {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kPoll, [this] { return loaded_ || failure_; });
      if (loaded_) return {};
    }
    if (stop.stop_requested()) return Stopped();
    LATTE_RETURN_IF_ERROR(CheckRanks());
  }
}

RemoteEngine::~RemoteEngine() {
  milliseconds patience(0);
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    if (loaded_) patience = options_.ending;
    if (failure_) patience = std::min(options_.ending, kAborting);
  }
  front_.reset();  // ranks learn that this is the end
  if (processes_) processes_->WaitForEnd(patience);
}

Result<RequestId> RemoteEngine::Submit(Request request) {
  return CatchExhaustion([&]() -> Result<RequestId> {
    const RequestRules rules{&files_.config, &settings_, &files_.tokenizer};
    LATTE_ASSIGN_OR_RETURN(auto state, MakeRequestState(std::move(request), rules));
    RequestId id = 0;
    LATTE_RETURN_IF_ERROR(SendRequest(WithTokens(*state), &id));
    return id;
  });
}

// Rank 0 counts its queue itself. The front bounds the requests that have not reached it.
Status RemoteEngine::SendRequest(Request request, RequestId* id) {
  const auto tokens = std::ssize(request.tokens);
  const std::lock_guard lock(mutex_);
  if (failure_) return tl::unexpected(*failure_);
  const QueueLimits limits{settings_.options.max_queued_requests,
                           settings_.options.max_queued_tokens};
  LATTE_RETURN_IF_ERROR(limits.HasRoom({std::ssize(untaken_), untaken_tokens_}, tokens));
  LATTE_ASSIGN_OR_RETURN(request.id, IdAfter(last_id_, request.id));
  const RequestId given = request.id;
  std::string bytes =
      ToBytes(FrontMessage{.kind = FrontMessage::Kind::kSubmit, .request = std::move(request)});
  if (bytes.size() > options_.control.most_payload)
    return InvalidArgument(
        fmt::format("the request has {} bytes as it is sent to a rank; expected at most {}",
                    bytes.size(), options_.control.most_payload));
  untaken_.push_back(tokens);
  untaken_tokens_ += tokens;
  *id = last_id_ = given;
  front_->Send(0, std::move(bytes));  // in the order of ids
  return {};
}

void RemoteEngine::Cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  front_->Send(0, ToBytes(FrontMessage{.kind = FrontMessage::Kind::kCancel, .id = id}));
}

Status RemoteEngine::Step() {
  std::vector<TokenEvent> events;
  size_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    events.swap(events_);
    bytes = std::exchange(event_bytes_, 0);
  }
  if (bytes == 0 && events.empty()) return CheckRanks();
  if (sink_ && !events.empty()) sink_(events);
  front_->Send(0, ToBytes(FrontMessage{.kind = FrontMessage::Kind::kDelivered,
                                       .bytes = static_cast<int64_t>(bytes)}));
  return {};
}

Status RemoteEngine::CheckRanks() {
  const auto ended = processes_->Ended();
  std::unique_lock lock(mutex_);
  if (ended && !failure_) {
    // A rank that has failed says why before the launcher ends.
    changed_.wait_for(lock, kSettling, [this] { return failure_.has_value(); });
    if (!failure_)
      failure_ =
          Error{Code::kUnavailable, fmt::format("{} has ended: {}", LauncherName(), ended->text)};
  }
  const double silence = Seconds(Clock::now() - last_report_);
  if (!failure_ && loaded_ && options_.step_timeout > 0 && silence > options_.step_timeout)
    failure_ = Error{Code::kUnavailable,
                     fmt::format("a step takes longer than --step-timeout {} s and counts as stuck",
                                 options_.step_timeout)};
  if (!failure_) return {};
  lock.unlock();
  FindCause();
  lock.lock();
  return tl::unexpected(*failure_);
}

// A rank that is gone is not always the cause. If the launcher was killed, ranks end with it; and
// what a rank says of its end may come after the end of another.
void RemoteEngine::FindCause() {
  const Clock::time_point end = Clock::now() + kSettling;
  std::unique_lock lock(mutex_);
  while (!rank_says_why_ && Clock::now() < end) {
    const auto ended = processes_->Ended();
    if (ended && ended->by_signal)
      failure_ =
          Error{Code::kUnavailable, fmt::format("{} was ended by {}", LauncherName(), ended->text)};
    if (ended && ended->by_signal) break;
    changed_.wait_for(lock, milliseconds(10));
  }
  rank_says_why_ = true;  // later messages change nothing
}

bool RemoteEngine::WaitForWork(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  const bool woken = changed_.wait_until(lock, deadline, [this] {
    return woken_ || failure_ || !events_.empty() || event_bytes_ > 0;
  });
  woken_ = false;
  return woken;
}

void RemoteEngine::Wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

Status RemoteEngine::SavePrefixes() {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return tl::unexpected(*failure_);
    saved_.reset();
    front_->Send(0, ToBytes(FrontMessage{.kind = FrontMessage::Kind::kSavePrefixes}));
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return saved_ || failure_; });
  const Error& result = saved_ ? *saved_ : *failure_;
  if (result.code == Code::kOk) return {};
  return tl::unexpected(result);
}

EngineStats RemoteEngine::Stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void RemoteEngine::OnMessage(int rank, const std::string& bytes) {
  Result<RankMessage> message = ReadRankMessage(bytes);
  if (!message)
    return SetFailure(message.error().code,
                      fmt::format("{}: {}", NameOf(rank), message.error().message));
  if (message->kind == RankMessage::Kind::kFailed) return OnFailed(rank, message->error);
  if (rank != 0)
    return SetFailure(Code::kCorrupt, NameOf(rank) + " has sent what only rank 0 does");
  if (message->kind == RankMessage::Kind::kLoaded) return OnLoaded(std::move(*message));
  if (message->kind == RankMessage::Kind::kReport)
    return OnReport(std::move(*message), bytes.size());
  const std::lock_guard lock(mutex_);
  saved_ = message->error;
  changed_.notify_all();
}

void RemoteEngine::OnLoaded(RankMessage message) {
  if (const Status valid = message.options.Validate(); !valid)
    return SetFailure(Code::kCorrupt, NameOf(0) + ": " + valid.error().message);
  const std::lock_guard lock(mutex_);
  if (loaded_) return;
  settings_.options = std::move(message.options);
  stats_ = message.stats;
  last_report_ = Clock::now();
  loaded_ = true;
  changed_.notify_all();
}

void RemoteEngine::OnReport(RankMessage message, size_t bytes) {
  const std::lock_guard lock(mutex_);
  last_report_ = Clock::now();
  stats_ = message.stats;
  for (; taken_ < message.taken && !untaken_.empty(); ++taken_) {
    untaken_tokens_ -= untaken_.front();
    untaken_.pop_front();
  }
  if (!message.events.empty()) event_bytes_ += bytes;
  std::ranges::move(message.events, std::back_inserter(events_));
  changed_.notify_all();
}

void RemoteEngine::OnFailed(int rank, const Error& error) {
  const std::lock_guard lock(mutex_);
  if (rank_says_why_ || ending_) return;
  rank_says_why_ = true;
  failure_ = Error{error.code == Code::kOk ? Code::kInternal : error.code,
                   fmt::format("{}: {}", NameOf(rank), error.message)};
  changed_.notify_all();
}

// The first failure is the cause of the others.
void RemoteEngine::SetFailure(Code code, std::string message) {
  const std::lock_guard lock(mutex_);
  if (failure_ || ending_) return;
  failure_ = Error{code, std::move(message)};
  changed_.notify_all();
}

}  // namespace latte

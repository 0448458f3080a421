#include "src/engine/link/front_link.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/engine/link/engine_messages.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kJoining = std::chrono::seconds(30);
constexpr auto kPatience = std::chrono::seconds(1);
// Counters are no more current than this.
constexpr auto kReportPeriod = std::chrono::milliseconds(100);
// The engine waits for a front that is further behind.
constexpr size_t kMostUndelivered = 1 << 20;

}  // namespace

Result<std::unique_ptr<FrontLink>> FrontLink::Join(const FrontAddress& front, int rank, int ranks,
                                                   std::function<void(const RankLost&)> lost,
                                                   const ControlOptions& options) {
  std::unique_ptr<FrontLink> link(new FrontLink(options));
  ControlEvents events;
  events.lost = std::move(lost);
  events.data = [at = link.get()](int, const std::string& bytes) { at->OnMessage(bytes); };
  events.left = [at = link.get()](int) { at->OnLeft(); };
  const WorldIdentity group{.world_size = static_cast<uint32_t>(ranks),
                            .epoch = 0,  // every start has an address and a secret of its own
                            .config_hash = front.config_hash};
  LATTE_ASSIGN_OR_RETURN(link->control_, ControlRank::Join(front.address, group, rank, front.secret,
                                                           options, kJoining, std::move(events)));
  return link;
}

FrontLink::~FrontLink() = default;

void FrontLink::Fail(const Error& error) {
  control_->Send(ToBytes(RankMessage{.kind = RankMessage::Kind::kFailed, .error = error}));
}

// Ranks without an engine to serve ignore messages.
void FrontLink::OnMessage(const std::string& bytes) {
  Result<FrontMessage> message = ReadFrontMessage(bytes);
  if (!message) return Fail(message.error());
  if (message->kind == FrontMessage::Kind::kSubmit) return OnSubmit(std::move(message->request));
  const std::lock_guard lock(mutex_);
  if (engine_ == nullptr) return;
  if (message->kind == FrontMessage::Kind::kCancel) {
    engine_->Cancel(message->id);
  } else if (message->kind == FrontMessage::Kind::kDelivered) {
    undelivered_ -= std::min(undelivered_, static_cast<size_t>(message->bytes));
  } else {
    wants_saving_ = true;
    engine_->Wake();
  }
  changed_.notify_all();
}

void FrontLink::OnSubmit(Request request) {
  const std::lock_guard lock(mutex_);
  if (engine_ == nullptr) return;
  const auto submitted = engine_->Submit(request);
  ++taken_;
  if (submitted) return;
  AddRefusal(request, submitted.error(), refusals_);
  engine_->Wake();
}

void FrontLink::OnLeft() {
  const std::lock_guard lock(mutex_);
  left_ = true;
  if (engine_ != nullptr) engine_->Wake();
  changed_.notify_all();
}

Status FrontLink::Serve(Engine& engine) {
  engine.SetEventSink([this](std::span<const TokenEvent> events) { Report(events); });
  {
    const std::lock_guard lock(mutex_);
    engine_ = &engine;
  }
  control_->Send(ToBytes(RankMessage{
      .kind = RankMessage::Kind::kLoaded, .options = engine.options(), .stats = engine.Stats()}));
  const Status done = Drive(engine);
  const std::lock_guard lock(mutex_);
  engine_ = nullptr;
  return done;
}

Status FrontLink::Drive(Engine& engine) {
  for (;;) {
    bool saves = false;
    bool refused = false;
    {
      const std::lock_guard lock(mutex_);
      if (left_) return {};
      saves = std::exchange(wants_saving_, false);
      refused = !refusals_.empty();
    }
    if (saves) {
      const Status saved = engine.SavePrefixes();
      const Error error = saved ? Error{Code::kOk, ""} : saved.error();
      control_->Send(ToBytes(RankMessage{.kind = RankMessage::Kind::kSaved, .error = error}));
    }
    LATTE_RETURN_IF_ERROR(engine.Step());
    if (refused || Clock::now() - last_report_ >= kReportPeriod) Report({});
    engine.WaitForWork(Clock::now() + kPatience);
  }
}

void FrontLink::Report(std::span<const TokenEvent> events) {
  last_report_ = Clock::now();
  RankMessage head{.kind = RankMessage::Kind::kReport, .stats = engine_->Stats()};
  std::vector<TokenEvent> all;
  {
    const std::lock_guard lock(mutex_);
    head.taken = taken_;
    all = std::exchange(refusals_, {});
  }
  for (const TokenEvent& event : events)
    if (!IsCut(event)) all.push_back(event);
  Send(head, all);
}

// An event of an answer that SendTooLarge has ended.
bool FrontLink::IsCut(const TokenEvent& event) {
  const std::pair answer(event.request, event.choice);
  return event.finish ? cut_.erase(answer) > 0 : cut_.contains(answer);
}

// Events that do not fit into one message go in several; one that fits into none becomes an error.
void FrontLink::Send(const RankMessage& head, std::span<const TokenEvent> events) {
  std::string bytes = ReportBytes(head, events);
  if (bytes.size() <= options_.most_payload) {
    if (!events.empty()) WaitForDelivery(bytes.size());
    return control_->Send(std::move(bytes));
  }
  if (events.size() > 1) {
    Send(head, events.first(events.size() / 2));
    return Send(head, events.subspan(events.size() / 2));
  }
  SendTooLarge(head, events.front(), bytes.size());
}

// Ends the answer, and the others of its request, as the engine has to.
void FrontLink::SendTooLarge(const RankMessage& head, const TokenEvent& event, size_t bytes) {
  TokenEvent end;
  end.request = event.request;
  end.user_data = event.user_data;
  end.choice = event.choice;
  end.finish = FinishReason::kError;
  end.error = {Code::kExhausted,
               fmt::format("a part of the answer has {} bytes; expected at most {}, which a rank "
                           "sends at once; ask for fewer logprobs",
                           bytes, options_.most_payload)};
  if (!event.finish) {
    cut_.emplace(event.request, event.choice);
    engine_->Cancel(event.request);
  }
  Send(head, {&end, 1});
}

void FrontLink::WaitForDelivery(size_t bytes) {
  std::unique_lock lock(mutex_);
  changed_.wait(
      lock, [&] { return left_ || undelivered_ == 0 || undelivered_ + bytes <= kMostUndelivered; });
  undelivered_ += bytes;
}

}  // namespace latte

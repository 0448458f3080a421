#include "src/engine/link/dp_engine.h"

#include <algorithm>
#include <utility>

#include "src/base/limits/out_of_memory.h"
#include "src/engine/group/messages.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

// Other groups do not report between steps that pages have come from a disk.
constexpr std::chrono::milliseconds kLookAgain(1);

// Prefixes are written to disks that may be slow.
constexpr std::chrono::hours kSaving(1);

// All counts but pages, which several engines may count.
void AddRequests(const EngineStats& from, EngineStats& to) {
  to.waiting += from.waiting;
  to.running += from.running;
  AddCounters(from, to);
}

void AddGroup(const EngineStats& from, EngineStats& to) {
  AddRequests(from, to);
  to.pages_total += from.pages_total;
  to.pages_used += from.pages_used;
  to.pages_cached += from.pages_cached;
  // Groups step together, and all count for all: their times are not added.
  to.idle_tokens = std::max(to.idle_tokens, from.idle_tokens);
  to.steps = std::max(to.steps, from.steps);
  to.step_seconds = std::max(to.step_seconds, from.step_seconds);
  to.forward_seconds = std::max(to.forward_seconds, from.forward_seconds);
}

// borrowed: pages that groups count as used.
void AddSpread(const EngineStats& from, int64_t borrowed, EngineStats& to) {
  AddRequests(from, to);
  to.pages_used += from.pages_used - borrowed;
  to.pages_cached += from.pages_cached;
  to.steps += from.steps;
  to.step_seconds += from.step_seconds;
  to.forward_seconds += from.forward_seconds;
}

}  // namespace

DpEngine::DpEngine(Parts parts)
    : parts_(std::move(parts)),
      options_(parts_.own->core().options()),
      limits_{options().max_queued_requests, options().max_queued_tokens},
      choice_(ChoiceRules(parts_.own->core().settings())),
      ordered_(static_cast<size_t>(parts_.leaders->size())),
      reports_(ordered_.size()) {
  // All groups are alike. Their counters come with the first step.
  const EngineStats own = parts_.own->core().Stats();
  for (GroupReport& report : reports_) {
    report.stats.pages_total = own.pages_total;
    report.stats.page_bytes = own.page_bytes;
    report.stats.page_tokens = own.page_tokens;
  }
  if (!parts_.spread) return;
  options_.max_tokens = parts_.spread->core().options().max_tokens;
  rule_.emplace(parts_.own->core().settings(), *parts_.own->core().rules().config);
}

const RequestRules& DpEngine::rules() const {
  return parts_.spread ? parts_.spread->core().rules() : parts_.own->core().rules();
}

DpEngine::~DpEngine() {
  // A rank that is lost now has nothing left to compute.
  (void)CatchLostRanks([&] {
    SendToAll(*parts_.leaders, WriteOrders({.kind = GroupOrders::Kind::kStop, .orders = {}}));
    parts_.followers->Stop();
  });
}

// Requests that wait at a group, or are on their way to it.
QueueCount DpEngine::QueueOf(int64_t group) const {
  const auto i = static_cast<size_t>(group);
  return {reports_[i].queue.requests + ordered_[i].requests,
          reports_[i].queue.tokens + ordered_[i].tokens};
}

// Errors: kExhausted if the queues of all groups are full.
Result<GivenRequest> DpEngine::Choose(const Sequence& s) const {
  auto out = choice_.Choose(
      s, [&](int64_t group) { return limits_.HasRoom(QueueOf(group), s.length()).has_value(); });
  if (out) return std::move(*out);
  return tl::unexpected(limits_.HasRoom(QueueOf(0), s.length()).error());
}

Result<RequestId> DpEngine::Submit(Request request) {
  return CatchExhaustion([&]() -> Result<RequestId> {
    LATTE_ASSIGN_OR_RETURN(const auto state, MakeRequestState(request, rules()));
    const Sequence& s = state->outputs.front()->sequence;
    const std::lock_guard lock(mutex_);
    LATTE_ASSIGN_OR_RETURN(const RequestId id, IdAfter(last_id_, request.id));
    request.id = id;
    if (rule_ && rule_->Spreads(s.length(), s.spec.max_len - s.length())) {
      const int answers = request.n;
      LATTE_RETURN_IF_ERROR(parts_.spread->core().Submit(std::move(request)));
      live_[id] = {std::nullopt, answers};
    } else {
      LATTE_ASSIGN_OR_RETURN(GivenRequest given, Choose(s));
      Give(id, std::move(request), std::move(given));
    }
    last_id_ = id;
    changed_.notify_all();
    return id;
  });
}

void DpEngine::Give(RequestId id, Request request, GivenRequest given) {
  Live& live = live_[id];
  live = {std::move(given), request.n};
  orders_.push_back({live.given->group, id, std::move(request)});
  choice_.Add(*live.given);
  QueueCount& ordered = ordered_[static_cast<size_t>(live.given->group)];
  ++ordered.requests;
  ordered.tokens += live.given->prompt;
}

void DpEngine::Cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  const auto live = live_.find(id);
  if (live == live_.end()) return;
  if (const auto& given = live->second.given)
    orders_.push_back({given->group, id, std::nullopt});
  else
    parts_.spread->core().Cancel(id);
  changed_.notify_all();
}

void DpEngine::Wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

bool DpEngine::WaitForWork(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  if (more_to_do_) return true;
  const bool may_have_work = !live_.empty();
  const Clock::time_point until =
      may_have_work ? std::min(deadline, Clock::now() + kLookAgain) : deadline;
  const bool has_news =
      changed_.wait_until(lock, until, [this] { return woken_ || !orders_.empty(); });
  return has_news || (may_have_work && until < deadline);
}

// The reports of all groups on these orders. Without memory for them, the groups are at different
// calls.
std::vector<GroupReport> DpEngine::Tell(const GroupOrders& orders) {
  try {
    SendToAll(*parts_.leaders, WriteOrders(orders));
    std::vector<GroupReport> out;
    for (const auto& message :
         GatherMessages(*parts_.leaders, WriteReport(parts_.own->Do(orders)))) {
      Result<GroupReport> report = ReadReport(message);
      if (!report) EndGroup(*parts_.followers->comms().world, report.error().message);
      out.push_back(std::move(*report));
    }
    return out;
  } catch (const std::bad_alloc& error) {
    EndGroup(*parts_.followers->comms().world, ErrorOf(error).message);
  }
}

void DpEngine::Note(const TokenEvent& event) {
  const auto live = live_.find(event.request);
  if (live == live_.end()) return;
  Live& request = live->second;
  if (event.token && request.given) choice_.Generated(*request.given, *event.token);
  if (!event.finish || --request.open > 0) return;
  if (request.given) choice_.Remove(*request.given);
  live_.erase(live);
}

// Keeps what reports say, which count the requests in `told`; returns their events.
std::vector<TokenEvent> DpEngine::Note(std::vector<GroupReport> reports,
                                       std::span<const QueueCount> told) {
  std::vector<TokenEvent> events;
  const std::lock_guard lock(mutex_);
  more_to_do_ = false;
  for (GroupReport& report : reports) {
    more_to_do_ = more_to_do_ || report.more_to_do;
    for (TokenEvent& event : report.events) {
      Note(event);
      events.push_back(std::move(event));
    }
    report.events.clear();
    for (const GroupReport::Prefill& prefill : report.prefills)
      if (const auto live = live_.find(prefill.request); live != live_.end())
        choice_.Prefills(*live->second.given, prefill.tokens);
  }
  if (parts_.spread) {
    for (TokenEvent& event : parts_.spread->TakeEvents()) {
      Note(event);
      events.push_back(std::move(event));
    }
    more_to_do_ = more_to_do_ || parts_.spread->HasWork();
    spread_stats_ = parts_.spread->core().Stats();
    borrowed_ = parts_.spread->borrowed();
  }
  for (size_t i = 0; i < told.size(); ++i) {
    ordered_[i].requests -= told[i].requests;
    ordered_[i].tokens -= told[i].tokens;
  }
  reports_ = std::move(reports);
  return events;
}

GroupOrders DpEngine::TakeOrders() {
  GroupOrders out;
  out.orders = std::exchange(orders_, {});
  if (!parts_.spread) return out;
  out.spread = parts_.spread->HasWork();
  for (int64_t group = 0; group < std::ssize(reports_); ++group)
    out.pages.push_back({parts_.spread->Claim(group), parts_.spread->TakeReturned(group)});
  return out;
}

void DpEngine::StepSpread(const std::vector<GroupReport>& reports, bool steps) {
  if (!parts_.spread) return;
  for (size_t i = 0; i < reports.size(); ++i)
    parts_.spread->Lent(static_cast<int64_t>(i), reports[i].lent, reports[i].lacks);
  if (!steps) return;
  if (const Status stepped = parts_.spread->Step(); !stepped) {
    // A rank was lost, which all learn.
    if (stepped.error().code == Code::kUnavailable)
      throw RankLost(RankLost::kUnknown, stepped.error().message);
    EndGroup(*parts_.followers->comms().world, stepped.error().message);
  }
}

Status DpEngine::Step() {
  if (broken_) return tl::unexpected<Error>(*broken_);
  GroupOrders orders;
  std::vector<QueueCount> told;
  {
    const std::lock_guard lock(mutex_);
    woken_ = false;
    if (orders_.empty() && !more_to_do_ && live_.empty()) return {};
    orders = TakeOrders();
    told = ordered_;
  }
  std::vector<TokenEvent> events;
  const Status done = CatchExhaustion([&] {
    return CatchLostRanks([&] {
      std::vector<GroupReport> reports = Tell(orders);
      StepSpread(reports, orders.spread);
      events = Note(std::move(reports), told);
    });
  });
  if (!done) broken_ = done.error();
  if (sink_ && !events.empty()) sink_(events);
  return done;
}

Status DpEngine::SavePrefixes() {
  Status saved;
  const auto keep_first = [&](const Status& one) {
    if (saved) saved = one;
  };
  LATTE_RETURN_IF_ERROR(CatchExhaustion([&] {
    return CatchLostRanks([&] {
      parts_.leaders->SetDeadline(kSaving);
      const bool spread = parts_.spread != nullptr;
      for (const GroupReport& report :
           Tell({.kind = GroupOrders::Kind::kSavePrefixes, .spread = spread, .orders = {}}))
        if (report.error) keep_first(tl::unexpected<Error>(*report.error));
      if (spread) keep_first(parts_.spread->SavePrefixes());
      parts_.leaders->SetDeadline(kCallDeadline);
    });
  }));
  return saved;
}

std::vector<EngineStats> DpEngine::GroupStats() const {
  std::vector<EngineStats> out;
  const std::lock_guard lock(mutex_);
  for (const GroupReport& report : reports_) out.push_back(report.stats);
  return out;
}

EngineStats DpEngine::Stats() const {
  EngineStats out;
  const std::vector<EngineStats> all = GroupStats();
  out.page_bytes = all.front().page_bytes;
  out.page_tokens = all.front().page_tokens;
  for (const EngineStats& one : all) AddGroup(one, out);
  const std::lock_guard lock(mutex_);
  AddSpread(spread_stats_, borrowed_, out);
  return out;
}

}  // namespace latte

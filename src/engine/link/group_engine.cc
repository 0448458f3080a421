#include "src/engine/link/group_engine.h"

#include "src/engine/group/leader.h"
#include "src/engine/group/messages.h"
#include "src/engine/link/engine_messages.h"

namespace latte {
namespace {

constexpr int64_t kKinds = 3;

Status OtherBuild(const char* what) {
  return Corrupt(fmt::format(
      "a message between ranks: expected {}, found other bytes; all ranks must run the same build",
      what));
}

// The end of every answer of a request that the engine does not take.
void Refuse(const GroupOrders::Order& order, const Error& error, std::vector<TokenEvent>& events) {
  for (int choice = 0; choice < std::max(order.request->n, 1); ++choice) {
    TokenEvent& event = events.emplace_back();
    event.request = order.id;
    event.user_data = order.request->user_data;
    event.choice = choice;
    event.finish = FinishReason::kError;
    event.error = error;
  }
}

}  // namespace

std::vector<std::byte> WriteOrders(const GroupOrders& orders) {
  WireWriter out;
  out.Int(static_cast<int64_t>(orders.kind));
  out.Int(std::ssize(orders.orders));
  for (const GroupOrders::Order& order : orders.orders) {
    out.Int(order.group);
    out.Int(static_cast<int64_t>(order.id));
    out.Int(order.request ? 1 : 0);
    if (order.request) Write(*order.request, out);
  }
  return out.Take();
}

Result<GroupOrders> ReadOrders(std::span<const std::byte> message) {
  WireReader in(message);
  GroupOrders out;
  const int64_t kind = in.Int();
  if (kind < 0 || kind >= kKinds) in.Fail();
  out.kind = static_cast<GroupOrders::Kind>(kind);
  for (int64_t rest = in.Int(); rest > 0 && in.good(); --rest) {
    GroupOrders::Order order;
    order.group = in.Int();
    order.id = static_cast<RequestId>(in.Int());
    if (in.Int() != 0) order.request = ReadRequest(in);
    out.orders.push_back(std::move(order));
  }
  if (!in.ok()) return tl::unexpected(OtherBuild("orders for groups").error());
  return out;
}

std::vector<std::byte> WriteReport(const GroupReport& report) {
  WireWriter out;
  out.Int(report.more_to_do ? 1 : 0);
  out.Int(report.queue.requests);
  out.Int(report.queue.tokens);
  Write(report.stats, out);
  WriteEvents(report.events, out);
  out.Int(report.error ? 1 : 0);
  if (report.error) Write(*report.error, out);
  return out.Take();
}

Result<GroupReport> ReadReport(std::span<const std::byte> message) {
  WireReader in(message);
  GroupReport out;
  out.more_to_do = in.Int() != 0;
  out.queue.requests = in.Int();
  out.queue.tokens = in.Int();
  out.stats = ReadStats(in);
  out.events = ReadEvents(in);
  if (in.Int() != 0) out.error = ReadError(in);
  if (!in.ok()) return tl::unexpected(OtherBuild("the report of a group").error());
  return out;
}

GroupEngine::GroupEngine(std::unique_ptr<EngineCore> core, int64_t group, Communicator& world)
    : core_(std::move(core)), group_(group), world_(world) {
  core_->SetEventSink([this](std::span<const TokenEvent> events) { Take(events); });
}

void GroupEngine::Take(std::span<const TokenEvent> events) {
  for (const TokenEvent& event : events) {
    const auto known = known_.find(event.request);
    TokenEvent& out = events_.emplace_back(event);
    out.request = known->second.id;
    if (!event.finish || --known->second.open > 0) continue;
    of_core_.erase(known->second.id);
    known_.erase(known);
  }
}

void GroupEngine::Accept(const GroupOrders::Order& order) {
  if (!order.request) {
    const auto found = of_core_.find(order.id);
    if (found != of_core_.end()) core_->Cancel(found->second);
    return;
  }
  if (order.group != group_) return;
  const Result<RequestId> id = core_->Submit(*order.request);
  if (!id) return Refuse(order, id.error(), events_);
  known_[*id] = {order.id, order.request->n};
  of_core_[order.id] = *id;
}

void GroupEngine::Fail(const Error& error) {
  // A rank was lost, which all learn.
  if (error.code == Code::kUnavailable) throw RankLost(RankLost::kUnknown, error.message);
  EndGroup(world_, error.message);
}

GroupReport GroupEngine::Do(const GroupOrders& orders) {
  for (const GroupOrders::Order& order : orders.orders) Accept(order);
  GroupReport out;
  if (orders.kind == GroupOrders::Kind::kStep) {
    if (const Status stepped = core_->Step(); !stepped) Fail(stepped.error());
  } else if (orders.kind == GroupOrders::Kind::kSavePrefixes) {
    if (const Status saved = core_->SavePrefixes(); !saved) out.error = saved.error();
  }
  out.more_to_do = core_->WaitForWork(std::chrono::steady_clock::now());
  out.queue = core_->queue();
  out.stats = core_->Stats();
  out.events = std::exchange(events_, {});
  return out;
}

void FollowOrders(GroupEngine& engine, Communicator& leaders) {
  std::vector<std::byte> message;
  while (true) {
    WaitForMessage(leaders, message);
    const Result<GroupOrders> orders = ReadOrders(message);
    if (!orders) EndGroup(leaders, orders.error().message);
    if (orders->kind == GroupOrders::Kind::kStop) return;
    GatherMessages(leaders, WriteReport(engine.Do(*orders)));
  }
}

}  // namespace latte

#include "src/engine/link/group_engine.h"

#include <algorithm>

#include "src/engine/group/leader.h"
#include "src/engine/group/messages.h"
#include "src/engine/link/engine_messages.h"
#include "src/engine/route/group_choice.h"

namespace latte {
namespace {

constexpr int64_t kKinds = 4;

Status OtherBuild(const char* what) {
  return Corrupt(fmt::format(
      "a message between ranks: expected {}, found other bytes; all ranks must run the same build",
      what));
}

}  // namespace

std::vector<std::byte> WriteOrders(const GroupOrders& orders) {
  WireWriter out;
  out.Int(static_cast<int64_t>(orders.kind));
  out.Int(orders.spread ? 1 : 0);
  out.Int(std::ssize(orders.pages));
  for (const GroupOrders::Pages& pages : orders.pages) {
    out.Int(pages.lend);
    out.List(std::span<const int32_t>(pages.returned));
  }
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
  out.spread = in.Int() != 0;
  for (int64_t rest = in.Int(); rest > 0 && in.good(); --rest) {
    GroupOrders::Pages pages;
    pages.lend = in.Int();
    const auto returned = in.List<int32_t>();
    pages.returned.assign(returned.begin(), returned.end());
    out.pages.push_back(std::move(pages));
  }
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
  out.List(std::span<const GroupReport::Prefill>(report.prefills));
  out.List(std::span<const int32_t>(report.lent));
  out.Int(report.lacks);
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
  const auto prefills = in.List<GroupReport::Prefill>();
  out.prefills.assign(prefills.begin(), prefills.end());
  const auto lent = in.List<int32_t>();
  out.lent.assign(lent.begin(), lent.end());
  out.lacks = in.Int();
  if (in.Int() != 0) out.error = ReadError(in);
  if (!in.ok()) return tl::unexpected(OtherBuild("the report of a group").error());
  return out;
}

GroupEngine::GroupEngine(std::unique_ptr<EngineCore> core, int64_t group, Communicator& world)
    : core_(std::move(core)), group_(group), world_(world) {
  core_->SetEventSink([this](std::span<const TokenEvent> events) {
    events_.insert(events_.end(), events.begin(), events.end());
  });
}

void GroupEngine::Accept(const GroupOrders::Order& order) {
  if (order.group != group_) return;
  if (!order.request) return core_->Cancel(order.id);
  if (const auto id = core_->Submit(*order.request); !id)
    AddRefusal(*order.request, id.error(), events_);
}

std::vector<GroupReport::Prefill> GroupEngine::Prefills() const {
  std::vector<GroupReport::Prefill> out;
  for (const auto& [id, request] : core_->requests()) {
    int64_t tokens = 0;
    for (const auto& output : request->outputs)
      if (!output->ended()) tokens += PrefillLeft(output->sequence).value_or(0);
    if (tokens > 0) out.push_back({id, tokens});
  }
  return out;
}

void GroupEngine::Fail(const Error& error) {
  // A rank was lost, which all learn.
  if (error.code == Code::kUnavailable) throw RankLost(RankLost::kUnknown, error.message);
  EndGroup(world_, error.message);
}

// Before the step, which saves pages that leave the cache.
void GroupEngine::MovePages(const GroupOrders& orders, GroupReport& report) {
  if (orders.pages.empty()) return;
  const GroupOrders::Pages& own = orders.pages[static_cast<size_t>(group_)];
  core_->pages().TakeBack(own.returned);
  // Each sequence that runs may need a page for its next token.
  report.lent = core_->pages().Lend(own.lend, core_->scheduler().running());
}

GroupReport GroupEngine::Do(const GroupOrders& orders) {
  for (const GroupOrders::Order& order : orders.orders) Accept(order);
  GroupReport out;
  MovePages(orders, out);
  if (orders.kind == GroupOrders::Kind::kStep) {
    if (const Status stepped = core_->Step(); !stepped) Fail(stepped.error());
  } else if (orders.kind == GroupOrders::Kind::kSavePrefixes) {
    if (const Status saved = core_->SavePrefixes(); !saved) out.error = saved.error();
  }
  out.more_to_do = core_->WaitForWork(std::chrono::steady_clock::now());
  out.queue = core_->queue();
  out.stats = core_->Stats();
  out.events = std::exchange(events_, {});
  out.prefills = Prefills();
  if (!orders.pages.empty())
    out.lacks = std::max<int64_t>(core_->scheduler().PagesShort(0, /*ahead=*/1), 0);
  return out;
}

void FollowOrders(GroupEngine& engine, Communicator& leaders,
                  const std::function<void()>& follow_spread) {
  std::vector<std::byte> message;
  while (true) {
    WaitForMessage(leaders, message);
    const Result<GroupOrders> orders = ReadOrders(message);
    if (!orders) EndGroup(leaders, orders.error().message);
    if (orders->kind == GroupOrders::Kind::kStop) return;
    if (orders->kind != GroupOrders::Kind::kSpread)
      GatherMessages(leaders, WriteReport(engine.Do(*orders)));
    if (orders->spread) follow_spread();
  }
}

}  // namespace latte

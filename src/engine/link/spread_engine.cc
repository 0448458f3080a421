#include "src/engine/link/spread_engine.h"

#include <algorithm>
#include <numeric>

namespace latte {
namespace {

// Pages are claimed before they are needed: groups lend pages when requests of theirs end.
constexpr int64_t kTokensAhead = kSplitKeys;

}  // namespace

SpreadEngine::SpreadEngine(Parts parts)
    : parts_(std::move(parts)),
      claims_(static_cast<size_t>(parts_.core->settings().spread), 0),
      lacks_(claims_.size(), 0),
      returned_(claims_.size()) {
  parts_.core->SetEventSink([this](std::span<const TokenEvent> events) {
    events_.insert(events_.end(), events.begin(), events.end());
  });
}

bool SpreadEngine::HasWork() {
  const bool owes = std::ranges::any_of(lacks_, [](int64_t pages) { return pages > 0; });
  return !core().requests().empty() || core().queue().requests > 0 || (owes && borrowed() > 0) ||
         core().WaitForWork(std::chrono::steady_clock::now());
}

void SpreadEngine::Lent(int64_t group, std::span<const int32_t> places, int64_t lacks) {
  core().pages().Borrow(group, places);
  lacks_[static_cast<size_t>(group)] = lacks;
}

int64_t SpreadEngine::borrowed() const {
  int64_t out = 0;
  for (size_t group = 0; group < claims_.size(); ++group)
    out += parts_.core->pages().borrowed(static_cast<int64_t>(group));
  return out;
}

// Before a step, which saves evicted pages: their groups may write to them after it.
void SpreadEngine::ReturnPages() {
  for (size_t i = 0; i < claims_.size(); ++i) {
    const auto group = static_cast<int64_t>(i);
    const int64_t left = -core().scheduler().PagesShort(group, kTokensAhead);
    const std::vector<int32_t> pages =
        core().pages().GiveBack(group, std::clamp<int64_t>(left, 0, lacks_[i]));
    returned_[i].insert(returned_[i].end(), pages.begin(), pages.end());
    lacks_[i] = 0;
  }
}

Status SpreadEngine::Step() {
  parts_.group->Announce(AnnouncementKind::kSpread, {});
  ReturnPages();
  const Status done = core().Step();
  if (!done) return done;
  parts_.world->Announce(AnnouncementKind::kPause, {});
  for (size_t i = 0; i < claims_.size(); ++i)
    claims_[i] =
        std::max<int64_t>(core().scheduler().PagesShort(static_cast<int64_t>(i), kTokensAhead), 0);
  return {};
}

Status SpreadEngine::SavePrefixes() {
  parts_.group->Announce(AnnouncementKind::kSpread, {});
  const Status saved = core().SavePrefixes();
  parts_.world->Announce(AnnouncementKind::kPause, {});
  return saved;
}

}  // namespace latte

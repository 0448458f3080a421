#include "src/engine/page_mover.h"

#include "src/base/check.h"
#include "src/cache/page_bytes.h"

namespace latte {
namespace {

// The tokens of a sequence up to and including those of a page.
PagePrefix PrefixUpTo(const Sequence& s, int64_t page_idx, int64_t page_tokens) {
  const auto end = static_cast<std::ptrdiff_t>((page_idx + 1) * page_tokens);
  return {s.spec.salt, {s.tokens.begin(), s.tokens.begin() + end}};
}

}  // namespace

void PageMover::Do(std::span<const PageOp> ops) {
  for (const PageOp& op : ops) {
    switch (op.kind) {
      case PageOp::Kind::kCopy:
        CopyPage(cache_, op.from, op.to);
        break;
      case PageOp::Kind::kSave:
        Save(op.from, op.prefix);
        break;
      case PageOp::Kind::kLoad:
        LATTE_CHECK(false, "pages are loaded for sequences");
    }
  }
}

void PageMover::Save(int32_t page, PagePrefix prefix) {
  if (!store_ || store_->Contains(prefix)) return;
  store_->Save(std::move(prefix), SavePage(cache_, page));
}

void PageMover::Begin(std::span<const PageLoad> loads, const Scheduler& scheduler) {
  for (const PageLoad& load : loads) {
    Prefix& prefix = prefixes_.try_emplace(load.id, Prefix{load.page_idx}).first->second;
    ++prefix.wanted;
  }
  Ask(scheduler);
}

// The store takes only so many loads at once; the rest is asked for as pages arrive. The tag is the
// sequence: its pages arrive in the order they were asked for.
void PageMover::Ask(const Scheduler& scheduler) {
  for (auto& [id, prefix] : prefixes_) {
    const Sequence* const s = scheduler.Find(id);
    while (s != nullptr && !prefix.broken && prefix.asked < prefix.wanted) {
      const int64_t page_idx = prefix.first + prefix.asked;
      if (!store_->Load(PrefixUpTo(*s, page_idx, cache_.spec().page_tokens),
                        static_cast<uint64_t>(id)))
        return;
      ++prefix.asked;
    }
  }
}

void PageMover::Place(const LoadedPage& page, const Scheduler& scheduler) {
  const auto id = static_cast<SequenceId>(page.tag);
  const auto found = prefixes_.find(id);
  if (found == prefixes_.end()) return;
  Prefix& prefix = found->second;
  const int64_t page_idx = prefix.first + prefix.arrived++;
  const Sequence* const s = scheduler.Find(id);
  if (s == nullptr || !page.bytes) prefix.broken = true;
  if (prefix.broken) return;
  LoadPage(cache_, s->pages[static_cast<size_t>(page_idx)], *page.bytes);
  ++prefix.usable;
}

void PageMover::Finish(Scheduler& scheduler) {
  if (!store_ || prefixes_.empty()) return;
  for (const LoadedPage& page : store_->TakeLoaded()) Place(page, scheduler);
  Ask(scheduler);
  for (auto it = prefixes_.begin(); it != prefixes_.end();) {
    Prefix& prefix = it->second;
    if (scheduler.Find(it->first) == nullptr) prefix.broken = true;
    const bool done = prefix.broken || prefix.arrived == prefix.wanted;
    // What was asked for must come in before the entry goes: its tag would be unknown.
    if (!done || prefix.arrived < prefix.asked) {
      ++it;
      continue;
    }
    scheduler.Loaded(it->first, prefix.usable);
    it = prefixes_.erase(it);
  }
}

}  // namespace latte

#include "src/engine/core/page_mover.h"

namespace latte {
namespace {

// The tokens of a sequence up to the end of a page.
PagePrefix PrefixUpTo(const Sequence& s, int64_t page_idx, int64_t page_tokens) {
  const auto end = static_cast<std::ptrdiff_t>((page_idx + 1) * page_tokens);
  return {s.spec.salt, {s.tokens.begin(), s.tokens.begin() + end}};
}

}  // namespace

StepCapacity PageMover::MovesCapacity(const StepCapacity& of_steps) {
  return {.copies = of_steps.copies, .groups = of_steps.groups};
}

// A save reads a page that an earlier step wrote, so it need not wait for the copies before it.
void PageMover::AddPageOps(std::span<const PageOp> ops, Step& step) {
  for (const PageOp& op : ops) {
    if (op.kind == PageOp::Kind::kSave) {
      Save(op.from, op.prefix);
      continue;
    }
    if (step.copies.full()) {
      moves_.Clear();
      for (const PageCopy& copy : step.copies.values()) moves_.copies.Add(copy);
      step.copies.Clear();
      runner_.Run(moves_);
    }
    step.copies.Add({op.from, op.to});
  }
}

bool PageMover::Save(int32_t page, PagePrefix prefix) {
  if (!store_ || store_->Contains(prefix)) return true;
  return store_->Save(std::move(prefix), runner_.SavePage(page));
}

void PageMover::StartLoads(std::span<const PageLoad> loads) {
  for (const PageLoad& load : loads) {
    Prefix& prefix = prefixes_[load.sequence->spec.id];
    if (prefix.wanted++ > 0) continue;
    prefix.sequence = load.sequence;
    prefix.first = load.page_idx;
  }
  RequestLoads();
}

// The store takes only so many loads at once; the rest is requested as pages arrive. The tag is the
// sequence: its pages arrive in the order of the requests.
void PageMover::RequestLoads() {
  for (auto& [id, prefix] : prefixes_) {
    while (!prefix.broken && prefix.requested < prefix.wanted) {
      const int64_t page_idx = prefix.first + prefix.requested;
      if (!store_->Load(PrefixUpTo(*prefix.sequence, page_idx, runner_.capacity().page_tokens),
                        static_cast<uint64_t>(id)))
        return;
      ++prefix.requested;
    }
  }
}

void PageMover::Place(const LoadedPage& page) {
  const auto found = prefixes_.find(static_cast<SequenceId>(page.tag));
  if (found == prefixes_.end()) return;
  Prefix& prefix = found->second;
  const int64_t page_idx = prefix.first + prefix.arrived++;
  if (!page.bytes) prefix.broken = true;
  if (prefix.broken) return;
  const int32_t to = prefix.sequence->pages[static_cast<size_t>(page_idx)];
  moves_.Clear();
  moves_.to_page = to;
  moves_.page = *page.bytes;
  runner_.Run(moves_);
  ++prefix.usable;
}

void PageMover::DropLoads(SequenceId id) {
  const auto found = prefixes_.find(id);
  if (found == prefixes_.end()) return;
  found->second.sequence = nullptr;
  found->second.broken = true;
}

void PageMover::FinishLoads(Scheduler& scheduler) {
  if (!store_ || prefixes_.empty()) return;
  for (const LoadedPage& page : store_->TakeLoaded()) Place(page);
  RequestLoads();
  for (auto it = prefixes_.begin(); it != prefixes_.end();) {
    Prefix& prefix = it->second;
    const bool done = prefix.broken || prefix.arrived == prefix.wanted;
    // Requested pages must arrive before the entry goes: their tag would be unknown.
    if (!done || prefix.arrived < prefix.requested) {
      ++it;
      continue;
    }
    if (prefix.sequence != nullptr) scheduler.Loaded(*prefix.sequence, prefix.usable);
    it = prefixes_.erase(it);
  }
}

}  // namespace latte

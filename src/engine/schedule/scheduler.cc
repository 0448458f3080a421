#include "src/engine/schedule/scheduler.h"

#include <algorithm>

#include "src/base/check.h"
#include "src/base/math.h"
#include "src/layers/path_groups.h"

namespace latte {
namespace {

// Length of the common beginning of two sequences of tokens.
int64_t CommonLength(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t most = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(most), b.begin()).first -
         a.begin();
}

// A chunk lies on one side of the border between prompt and output, because the two take different
// paths.
int64_t WantedTokens(const Sequence& s) {
  const int64_t end = s.cached_len < s.prompt_len_for_path ? s.prompt_len_for_path : s.length();
  return end - s.cached_len;
}

// The tokens that the step computes.
std::span<const int32_t> TokensOf(const SequenceStep& step) {
  Sequence& s = *step.sequence;
  if (step.drafts == 0)
    return std::span(s.tokens).subspan(static_cast<size_t>(step.chunk.cached_len),
                                       static_cast<size_t>(step.chunk.count));
  s.with_drafts = {s.tokens.back()};
  s.with_drafts.insert(s.with_drafts.end(), s.drafts.begin(), s.drafts.end());
  return s.with_drafts;
}

}  // namespace

Scheduler::Scheduler(SchedulerOptions options, CacheManager& cache)
    : options_(std::move(options)), cache_(cache) {
  LATTE_CHECK(options_.max_sequences < options_.max_batch_tokens, "{} sequences, {} tokens",
              options_.max_sequences, options_.max_batch_tokens);
}

void Scheduler::Add(Sequence& s) {
  s.prompt_len = s.length();
  s.rank = s.spec.priority * options_.aging_steps + step_;
  LATTE_CHECK(s.prompt_len > 0 && s.prompt_len < s.spec.max_len, "{} of {} tokens", s.prompt_len,
              s.spec.max_len);
  LATTE_CHECK(cache_.Holds(s.spec.max_len), "{} tokens", s.spec.max_len);
  LATTE_CHECK(s.spec.outputs <= options_.max_sequences, "{} outputs", s.spec.outputs);
  const bool added = queue_.insert(&s).second;
  LATTE_CHECK(added, "an id was used twice");
}

StepPlan Scheduler::Plan() {
  ++step_;
  StepPlan plan;
  PlanDecodes(plan);
  AddDrafts(plan);
  most_for_shorter_ = Room(plan) / 2;
  PlanPrompts(plan);
  PlanAdmissions(plan);
  FillUp(plan);
  for (SequenceStep& step : plan.steps) step.chunk.path = PathOf(*step.sequence, step.chunk.count);
  SortByPath(plan.steps, [](const SequenceStep& step) { return step.chunk.path; });
  // Only now do the pages stay as they are.
  for (SequenceStep& step : plan.steps) {
    step.chunk.tokens = TokensOf(step);
    step.chunk.pages = step.sequence->pages;
  }
  plan.ops = cache_.TakeOps();
  return plan;
}

void Scheduler::PlanDecodes(StepPlan& plan) {
  // A copy: preemption takes sequences out of running_.
  const std::vector<Sequence*> in_order(running_.begin(), running_.end());
  for (Sequence* s : in_order) {
    if (s->state != SequenceState::kRunning || s->remain_len() != 1 || s->held || Room(plan) == 0)
      continue;
    if (TakePage(*s, plan)) AddStep(*s, 1, plan);
  }
}

void Scheduler::AddDrafts(StepPlan& plan) const {
  int64_t room = CeilDiv(Room(plan), int64_t{2});
  for (SequenceStep& step : plan.steps) {
    Sequence& s = *step.sequence;
    const int64_t in_pages = std::ssize(s.pages) * cache_.page_tokens() - s.length();
    step.drafts = std::min({std::ssize(s.drafts), room, in_pages});
    s.drafts.resize(static_cast<size_t>(step.drafts));
    step.chunk.count += step.drafts;
    plan.tokens += step.drafts;
    room -= step.drafts;
  }
}

int64_t Scheduler::ReserveDrafts(Sequence& s, int64_t count) {
  if (s.state != SequenceState::kRunning || s.remain_len() != 1 ||
      s.cached_len < s.prompt_len_for_path)
    return 0;
  // The token after the last draft has its place too.
  count = std::min(count, s.spec.max_len - s.length() - 1);
  for (; count > 0; --count) {
    const int64_t held = std::ssize(s.pages);
    const int64_t more = PagesFor(s.length() + count) - held;
    if (more > 0 && !cache_.CanReserve(held, more, running() - 1)) continue;
    if (cache_.Reserve(s.pages, s.length() + count)) return count;
  }
  return 0;
}

void Scheduler::PlanPrompts(StepPlan& plan) {
  for (Sequence* s : running_) {
    if (s->state != SequenceState::kRunning || s->remain_len() < 2) continue;
    if (!AddChunk(*s, plan) && TokensForShorter(*s) == 0) return;
  }
}

int64_t Scheduler::TokensForShorter(Sequence& s) const {
  constexpr int64_t kTimesShorter = 8;
  int64_t tokens = 0;
  const auto add = [&](Ordered::const_iterator other, Ordered::const_iterator end) {
    for (; other != end && tokens < most_for_shorter_; ++other) {
      const int64_t remain = (*other)->remain_len();
      const bool is_prompt = (*other)->state != SequenceState::kLoading && remain > 1;
      if (is_prompt && remain * kTimesShorter <= s.remain_len()) tokens += remain;
    }
  };
  add(running_.upper_bound(&s), running_.end());
  add(queue_.begin(), queue_.end());
  return std::min(tokens, most_for_shorter_);
}

void Scheduler::FillUp(StepPlan& plan) const {
  for (SequenceStep& step : plan.steps) {
    const int64_t more = std::min(WantedTokens(*step.sequence) - step.chunk.count, Room(plan));
    if (more <= 0) continue;
    step.chunk.count += more;
    step.samples = step.chunk.total_len() == step.sequence->length();
    plan.tokens += more;
  }
}

bool Scheduler::AddChunk(Sequence& s, StepPlan& plan) {
  const int64_t wanted = WantedTokens(s);
  const int64_t count = std::clamp(Room(plan) - TokensForShorter(s), int64_t{0}, wanted);
  const bool alone =
      std::none_of(plan.steps.begin(), plan.steps.end(),
                   [](const SequenceStep& step) { return step.chunk.count > step.drafts + 1; });
  // Every chunk of a prompt expands all cached tokens before it, so small chunks are expensive.
  if (count == 0 || (!alone && count < std::min(wanted, options_.min_chunk_tokens))) return false;
  AddStep(s, count, plan);
  return true;
}

void Scheduler::AddStep(Sequence& s, int64_t count, StepPlan& plan) {
  SequenceStep step;
  step.sequence = &s;
  step.chunk.count = count;
  step.chunk.cached_len = s.cached_len;
  step.samples = s.cached_len + count == s.length();
  plan.steps.push_back(step);
  plan.tokens += count;
}

MlaPath Scheduler::PathOf(const Sequence& s, int64_t count) const {
  const bool prompt = s.cached_len < s.prompt_len_for_path;
  return options_.chunk_path(prompt ? s.prompt_path : options_.decode_path, s.cached_len, count);
}

bool Scheduler::TakePage(Sequence& s, StepPlan& plan) {
  while (true) {
    if (cache_.Reserve(s.pages, s.length()) && cache_.MakeWritable(s.pages, s.cached_len))
      return true;
    if (running_.size() == 1) {
      if (DropLocksOfWaiting(s)) continue;
      // All other pages are ancestors of its own in the tree, and stay as long as its own do.
      Preempt(s, plan);
      cache_.EvictAll();
      return false;
    }
    const auto last = std::find_if(running_.rbegin(), running_.rend(), [](const Sequence* other) {
      return other->state == SequenceState::kRunning;
    });
    Sequence* const victim = *last;  // s runs, so there is one
    Preempt(*victim, plan);
    if (victim == &s) return false;
  }
}

void Scheduler::Preempt(Sequence& s, StepPlan& plan) {
  if (!options_.replay) {
    s.shared_len = s.loaded_len = 0;
    s.admitted_before = false;
  }
  std::vector<int32_t> own(s.pages.begin() + PagesFor(s.shared_len), s.pages.end());
  s.pages.resize(static_cast<size_t>(PagesFor(s.shared_len)));
  cache_.Release(own);
  s.cached_len = s.shared_len;
  s.inserted_len = s.shared_len;
  s.drafts.clear();
  s.state = SequenceState::kWaiting;
  ++s.preemptions;
  ++preemptions_;
  running_.erase(&s);
  queue_.insert(&s);
  plan.preempted.push_back(&s);
}

void Scheduler::PlanAdmissions(StepPlan& plan) {
  // After a preemption no page is left, unless no sequence runs.
  if (!plan.preempted.empty() && !running_.empty()) return;
  for (auto next = queue_.begin(); next != queue_.end();) {
    Sequence* const s = *next++;  // it may leave the queue
    if (Room(plan) == 0 || FreePlaces() < s->spec.outputs) return;
    Admission admission = Admit(*s, plan);
    if (admission == Admission::kWaitsForPages && running_.empty())
      admission = AdmitAlone(*s, plan);
    if (admission == Admission::kWaitsForPages) return;
    if (admission == Admission::kYes && s->state == SequenceState::kRunning &&
        !AddChunk(*s, plan) && TokensForShorter(*s) == 0)
      return;
  }
}

Scheduler::Admission Scheduler::Admit(Sequence& s, StepPlan& plan) {
  const bool first_time = !s.admitted_before;
  if (first_time && s.spec.reuses_prefix) {
    s.pages = cache_.Match(s.spec.salt, s.tokens);
    if (SharesWithRunning(s)) {
      cache_.Release(s.pages);
      return Admission::kWaitsForOthers;
    }
  }
  // A page is left for every running sequence, or else the new one would soon preempt another.
  const auto held = static_cast<int64_t>(s.pages.size());
  const int64_t room = std::min(s.length() + 1, s.spec.max_len);
  const int64_t wanted = PagesFor(room) - held;
  if (!cache_.CanReserve(held, wanted, running()) || !cache_.Reserve(s.pages, room)) {
    if (first_time) cache_.Release(s.pages);
    return Admission::kWaitsForPages;
  }
  queue_.erase(&s);
  running_.insert(&s);
  if (first_time) {
    if (s.preemptions == 0) plan.admitted.push_back(&s);
    s.shared_len = held * cache_.page_tokens();
    if (const int64_t on_disk = PagesToLoad(s, held); on_disk > 0) {
      BeginLoads(s, on_disk, plan);
      return Admission::kYes;
    }
  }
  Start(s);
  return Admission::kYes;
}

// Whether a running prompt is about to compute pages that `s`, holding what is known, begins with.
bool Scheduler::SharesWithRunning(const Sequence& s) const {
  if (!cache_.keeps_prefixes()) return false;
  const int64_t page = cache_.page_tokens();
  const auto known = static_cast<int64_t>(s.pages.size());
  return std::any_of(running_.begin(), running_.end(), [&](const Sequence* other) {
    if (other->remain_len() < 2 || other->spec.salt != s.spec.salt) return false;
    const int64_t most = std::min(s.length() - 1, other->prompt_len);
    const int64_t common =
        CommonLength(std::span(s.tokens).first(static_cast<size_t>(most)),
                     std::span(other->tokens).first(static_cast<size_t>(other->prompt_len)));
    return common / page > known;
  });
}

// Never all of a prompt: one token is left to compute.
int64_t Scheduler::PagesToLoad(const Sequence& s, int64_t first) const {
  if (!options_.pages_on_disk || !s.spec.reuses_prefix) return 0;
  const int64_t most = (s.length() - 1) / cache_.page_tokens() - first;
  return most > 0 ? std::min(options_.pages_on_disk(s, first), most) : 0;
}

void Scheduler::BeginLoads(Sequence& s, int64_t pages, StepPlan& plan) {
  s.state = SequenceState::kLoading;
  s.cached_len = s.shared_len;
  const int64_t first = PagesFor(s.shared_len);
  for (int64_t i = first; i < first + pages; ++i)
    plan.loads.push_back({&s, i, s.pages[static_cast<size_t>(i)]});
}

void Scheduler::Loaded(Sequence& s, int64_t pages) {
  if (s.state != SequenceState::kLoading) return;
  s.loaded_len = pages * cache_.page_tokens();
  s.shared_len += s.loaded_len;
  Start(s);
  Offer(s);
}

void Scheduler::Start(Sequence& s) {
  s.state = SequenceState::kRunning;
  s.cached_len = s.shared_len;
  if (s.admitted_before) return;
  s.admitted_before = true;
  s.prompt_len_for_path = options_.replay ? s.prompt_len : s.length();
  s.prompt_path = options_.prompt_path(s.prompt_len_for_path - s.shared_len, s.shared_len);
}

// No sequence runs, and `s` does not fit with the prefixes that preempted sequences keep.
Scheduler::Admission Scheduler::AdmitAlone(Sequence& s, StepPlan& plan) {
  DropLocksOfWaiting(s);
  const Admission admission = Admit(s, plan);
  if (admission == Admission::kYes) return admission;
  DropLock(s);  // its ancestors in the tree may be pages of others, which stay as long as it does
  return Admit(s, plan);
}

bool Scheduler::DropLocksOfWaiting(const Sequence& except) {
  bool dropped = false;
  for (Sequence* s : queue_) {
    if (s == &except || s->pages.empty()) continue;
    DropLock(*s);
    dropped = true;
  }
  return dropped;
}

// A waiting sequence loses its shared prefix. The last bits of those rows may differ when it
// computes them itself.
void Scheduler::DropLock(Sequence& s) {
  cache_.Release(s.pages);
  s.shared_len = s.cached_len = s.inserted_len = s.loaded_len = 0;
}

void Scheduler::Advance(const StepPlan& plan) {
  for (const SequenceStep& step : plan.steps) {
    Sequence& s = *step.sequence;
    s.cached_len = step.chunk.total_len() - step.drafts - (step.repeats ? 1 : 0);
    Offer(s);
  }
}

void Scheduler::Offer(Sequence& s) {
  const int64_t limit =
      options_.share_generated ? s.cached_len : std::min(s.cached_len, s.prompt_len_for_path);
  const int64_t whole = limit / cache_.page_tokens();
  const int64_t tokens = whole * cache_.page_tokens();
  if (tokens <= s.inserted_len) return;
  s.inserted_len = tokens;
  cache_.Insert(s.spec.salt, std::span(s.tokens).first(static_cast<size_t>(tokens)),
                std::span(s.pages).first(static_cast<size_t>(whole)));
}

void Scheduler::Fork(Sequence& s, Sequence& copy) {
  LATTE_CHECK(s.state == SequenceState::kRunning && s.remain_len() == 0 && s.spec.outputs > 1,
              "{} tokens to compute, {} outputs", s.remain_len(), s.spec.outputs);
  --s.spec.outputs;
  copy.spec.outputs = 1;
  cache_.Share(copy.pages);
  const bool added = running_.insert(&copy).second;
  LATTE_CHECK(added, "an id was used twice");
}

bool Scheduler::Append(Sequence& s, int32_t token) {
  LATTE_CHECK(
      s.state == SequenceState::kRunning && s.remain_len() == 0 && s.length() < s.spec.max_len,
      "{} tokens to compute, {} of {}", s.remain_len(), s.length(), s.spec.max_len);
  s.tokens.push_back(token);
  if (s.drafts.empty() || s.drafts.front() != token) {
    s.drafts.clear();
    return false;
  }
  s.drafts.erase(s.drafts.begin());
  ++s.cached_len;
  return true;
}

void Scheduler::Remove(Sequence& s) {
  if (s.state == SequenceState::kRunning) Offer(s);  // accepted drafts
  queue_.erase(&s);
  running_.erase(&s);
  cache_.Release(s.pages);
  s.state = SequenceState::kEnded;
}

int64_t Scheduler::PagesShort(int64_t owner, int64_t ahead) const {
  const auto need = [&](const Sequence& s) {
    const auto held = std::ssize(s.pages);
    const int64_t pages = PagesFor(std::min(s.length() + ahead, s.spec.max_len));
    // A page of every owner is left for each sequence that runs (Admit).
    return std::max<int64_t>(cache_.NeedOf(owner, held, std::max<int64_t>(pages - held, 0)), 1);
  };
  int64_t out = -cache_.available_pages(owner);
  for (const Sequence* s : running_) out += need(*s);
  if (!queue_.empty()) out += need(**queue_.begin());
  return out;
}

int64_t Scheduler::PagesFor(int64_t tokens) const { return CeilDiv(tokens, cache_.page_tokens()); }

int64_t Scheduler::FreePlaces() const {
  int64_t taken = 0;
  for (const Sequence* s : running_) taken += s->spec.outputs;
  return options_.max_sequences - taken;
}

}  // namespace latte

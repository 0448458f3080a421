#include "src/engine/schedule/scheduler.h"

#include <algorithm>

#include "src/base/check.h"
#include "src/base/math.h"

namespace latte {
namespace {

// Length of the common beginning of two sequences of tokens.
int64_t CommonLength(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t most = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(most), b.begin()).first -
         a.begin();
}

}  // namespace

Scheduler::Scheduler(SchedulerOptions options, CacheManager& cache)
    : options_(std::move(options)), cache_(cache) {
  LATTE_CHECK(options_.max_sequences < options_.max_batch_tokens, "{} sequences, {} tokens",
              options_.max_sequences, options_.max_batch_tokens);
}

void Scheduler::Add(SequenceSpec spec, std::vector<int32_t> prompt) {
  auto s = std::make_unique<Sequence>();
  s->prompt_len = static_cast<int64_t>(prompt.size());
  s->tokens = std::move(prompt);
  s->rank = spec.priority * options_.aging_steps + step_;
  s->spec = std::move(spec);
  LATTE_CHECK(s->prompt_len > 0 && s->prompt_len < s->spec.max_len, "{} of {} tokens",
              s->prompt_len, s->spec.max_len);
  LATTE_CHECK(PagesFor(s->spec.max_len) <= cache_.total_pages(), "{} tokens", s->spec.max_len);
  LATTE_CHECK(s->spec.answers <= options_.max_sequences, "{} answers", s->spec.answers);
  queue_.insert(s.get());
  const bool added = sequences_.emplace(s->spec.id, std::move(s)).second;
  LATTE_CHECK(added, "an id was used twice");
}

StepPlan Scheduler::Plan() {
  ++step_;
  StepPlan plan;
  PlanDecodes(plan);
  PlanPrompts(plan);
  PlanAdmissions(plan);
  std::stable_partition(plan.steps.begin(), plan.steps.end(),
                        [](const SequenceStep& s) { return s.path == MlaPath::kAbsorbed; });
  plan.ops = cache_.TakeOps();
  return plan;
}

void Scheduler::PlanDecodes(StepPlan& plan) {
  // A copy: preemption takes sequences out of running_.
  const std::vector<Sequence*> in_order(running_.begin(), running_.end());
  for (Sequence* s : in_order) {
    if (s->state != SequenceState::kRunning || s->remain_len() != 1 || Room(plan) == 0) continue;
    if (TakePage(*s, plan)) AddStep(*s, 1, plan);
  }
}

void Scheduler::PlanPrompts(StepPlan& plan) {
  for (Sequence* s : running_) {
    if (s->state != SequenceState::kRunning || s->remain_len() < 2) continue;
    if (!AddPiece(*s, plan)) return;
  }
}

// A piece lies on one side of the border between prompt and answer, which take different paths.
bool Scheduler::AddPiece(Sequence& s, StepPlan& plan) {
  const int64_t end = s.cached_len < s.prompt_path_end ? s.prompt_path_end : s.length();
  const int64_t wanted = end - s.cached_len;
  const int64_t count = std::min(wanted, Room(plan));
  const bool alone = std::none_of(plan.steps.begin(), plan.steps.end(),
                                  [](const SequenceStep& step) { return step.count > 1; });
  // Every piece of a prompt expands all that is cached before it, so small ones are dear.
  if (count == 0 || (!alone && count < std::min(wanted, options_.min_chunk_tokens))) return false;
  AddStep(s, count, plan);
  return true;
}

void Scheduler::AddStep(Sequence& s, int64_t count, StepPlan& plan) {
  SequenceStep step;
  step.id = s.spec.id;
  step.sequence = &s;
  step.begin = s.cached_len;
  step.count = count;
  step.path = s.cached_len < s.prompt_path_end ? s.prompt_path : options_.generated_path;
  step.draws = s.cached_len + count == s.length();
  plan.steps.push_back(step);
  plan.tokens += count;
}

bool Scheduler::TakePage(Sequence& s, StepPlan& plan) {
  while (true) {
    if (cache_.Reserve(s.pages, s.length()) && cache_.MakeWritable(s.pages, s.cached_len))
      return true;
    if (running_.size() == 1) {
      if (DropLocksOfWaiting(s)) continue;
      // All others are pages that its own came to lie below in the tree, so that they stay as long
      // as those do.
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
  s.state = SequenceState::kWaiting;
  ++s.preemptions;
  ++preemptions_;
  running_.erase(&s);
  queue_.insert(&s);
  plan.preempted.push_back(s.spec.id);
}

void Scheduler::PlanAdmissions(StepPlan& plan) {
  // After a preemption there is no page to spare, unless nobody is left to take it.
  if (!plan.preempted.empty() && !running_.empty()) return;
  for (auto next = queue_.begin(); next != queue_.end();) {
    Sequence* const s = *next++;  // it may leave the queue
    if (Room(plan) == 0 || FreePlaces() < s->spec.answers) return;
    Admission admission = Admit(*s, plan);
    if (admission == Admission::kWaitsForPages && running_.empty())
      admission = AdmitAlone(*s, plan);
    if (admission == Admission::kWaitsForPages) return;
    if (admission == Admission::kYes && s->state == SequenceState::kRunning && !AddPiece(*s, plan))
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
  // A page for everyone who runs, so that the newcomer does not soon throw somebody out.
  const auto held = static_cast<int64_t>(s.pages.size());
  const int64_t room = std::min(s.length() + 1, s.spec.max_len);
  const int64_t wanted = PagesFor(room) - held;
  if (!cache_.CanReserve(wanted + running()) || !cache_.Reserve(s.pages, room)) {
    if (first_time) cache_.Release(s.pages);
    return Admission::kWaitsForPages;
  }
  queue_.erase(&s);
  running_.insert(&s);
  if (first_time) {
    if (s.preemptions == 0) plan.admitted.push_back(s.spec.id);
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
    plan.loads.push_back({s.spec.id, i, s.pages[static_cast<size_t>(i)]});
}

void Scheduler::Loaded(SequenceId id, int64_t pages) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end() || found->second->state != SequenceState::kLoading) return;
  Sequence& s = *found->second;
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
  s.prompt_path_end = options_.replay ? s.prompt_len : s.length();
  s.prompt_path = options_.prompt_path(s.prompt_path_end - s.shared_len, s.shared_len);
}

// Nobody runs and `s` does not fit beside the prefixes that preempted sequences keep.
Scheduler::Admission Scheduler::AdmitAlone(Sequence& s, StepPlan& plan) {
  DropLocksOfWaiting(s);
  const Admission admission = Admit(s, plan);
  if (admission == Admission::kYes) return admission;
  DropLock(s);  // in the tree it may lie below pages of others, which stay as long as it does
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

// A waiting sequence loses its shared prefix. It may get other last bits when it computes those
// rows itself.
void Scheduler::DropLock(Sequence& s) {
  cache_.Release(s.pages);
  s.shared_len = s.cached_len = s.inserted_len = s.loaded_len = 0;
}

void Scheduler::Advance(const StepPlan& plan) {
  for (const SequenceStep& step : plan.steps) {
    Sequence& s = At(step.id);
    s.cached_len = step.begin + step.count;
    Offer(s);
  }
}

void Scheduler::Offer(Sequence& s) {
  const int64_t limit =
      options_.share_generated ? s.cached_len : std::min(s.cached_len, s.prompt_path_end);
  const int64_t whole = limit / cache_.page_tokens();
  const int64_t tokens = whole * cache_.page_tokens();
  if (tokens <= s.inserted_len) return;
  s.inserted_len = tokens;
  cache_.Insert(s.spec.salt, std::span(s.tokens).first(static_cast<size_t>(tokens)),
                std::span(s.pages).first(static_cast<size_t>(whole)));
}

void Scheduler::Fork(SequenceId id, SequenceId copy) {
  Sequence& s = At(id);
  LATTE_CHECK(s.state == SequenceState::kRunning && s.remain_len() == 0 && s.spec.answers > 1,
              "{} tokens to compute, {} answers", s.remain_len(), s.spec.answers);
  --s.spec.answers;
  auto forked = std::make_unique<Sequence>(s);
  forked->spec.id = copy;
  forked->spec.answers = 1;
  cache_.Share(forked->pages);
  running_.insert(forked.get());
  const bool added = sequences_.emplace(copy, std::move(forked)).second;
  LATTE_CHECK(added, "an id was used twice");
}

void Scheduler::Append(SequenceId id, int32_t token) {
  Sequence& s = At(id);
  LATTE_CHECK(
      s.state == SequenceState::kRunning && s.remain_len() == 0 && s.length() < s.spec.max_len,
      "{} tokens to compute, {} of {}", s.remain_len(), s.length(), s.spec.max_len);
  s.tokens.push_back(token);
}

void Scheduler::Remove(SequenceId id) {
  Sequence& s = At(id);
  queue_.erase(&s);
  running_.erase(&s);
  cache_.Release(s.pages);
  sequences_.erase(id);
}

const Sequence* Scheduler::Find(SequenceId id) const {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : found->second.get();
}

Sequence& Scheduler::At(SequenceId id) {
  const auto found = sequences_.find(id);
  LATTE_CHECK(found != sequences_.end(), "no sequence {}", id);
  return *found->second;
}

int64_t Scheduler::PagesFor(int64_t tokens) const { return CeilDiv(tokens, cache_.page_tokens()); }

int64_t Scheduler::FreePlaces() const {
  int64_t taken = 0;
  for (const Sequence* s : running_) taken += s->spec.answers;
  return options_.max_sequences - taken;
}

}  // namespace latte

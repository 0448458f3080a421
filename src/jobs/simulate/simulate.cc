#include "src/jobs/simulate/simulate.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "src/base/json_out.h"
#include "src/engine/request/inbox.h"
#include "src/engine/route/group_choice.h"
#include "src/engine/schedule/scheduler_rules.h"
#include "src/jobs/bench/bench_timer.h"

namespace latte {
namespace {

// The requests of one group of ranks. Sequence i is request i of the trace.
class SimulatedGroup {
 public:
  SimulatedGroup(const ModelConfig& config, const Settings& settings)
      : limits_{settings.options.max_queued_requests, settings.options.max_queued_tokens},
        cache_(CacheRules(settings)),
        scheduler_(SchedulerRules(settings, config.mla), cache_) {}

  bool idle() const { return scheduler_.idle(); }
  const Scheduler& scheduler() const { return scheduler_; }
  int64_t used_pages() const { return cache_.used_pages(); }
  const std::map<SequenceId, Sequence>& sequences() const { return sequences_; }
  bool HasRoom(int64_t prompt) const { return limits_.HasRoom(queue_, prompt).has_value(); }

  void Add(Sequence sequence) {
    ++queue_.requests;
    queue_.tokens += sequence.length();
    const SequenceId id = sequence.spec.id;
    scheduler_.Add(sequences_[id] = std::move(sequence));
  }

  StepPlan Plan() {
    StepPlan plan = scheduler_.Plan();
    for (const Sequence* s : plan.admitted) {
      --queue_.requests;
      queue_.tokens -= s->prompt_len;
    }
    return plan;
  }

  void Advance(const StepPlan& plan) { scheduler_.Advance(plan); }

  // A token of the answer; whether it is the last.
  bool Append(Sequence& s, int32_t token) {
    if (s.length() + 1 < s.spec.max_len) {
      scheduler_.Append(s, token);
      return false;
    }
    scheduler_.Remove(s);
    sequences_.erase(s.spec.id);
    return true;
  }

 private:
  QueueLimits limits_;
  QueueCount queue_;
  CacheManager cache_;
  Scheduler scheduler_;
  std::map<SequenceId, Sequence> sequences_;
};

class Simulation {
 public:
  Simulation(std::span<const TraceRequest> trace, const ModelConfig& config,
             const Settings& settings, const StepCost& cost, const JobProgress& progress)
      : trace_(trace),
        model_{config.moe, settings.sparse_from},
        cost_(cost),
        progress_(progress),
        choice_(ChoiceRules(settings)) {
    for (int64_t i = 0; i < settings.options.dp; ++i) groups_.emplace_back(config, settings);
    for (const TraceRequest& request : trace)
      out_.requests.push_back({request.arrival_s, std::ssize(request.tokens), {}});
    out_.counts.groups = settings.options.dp;
    out_.counts.pages_total = settings.options.dp * settings.pages;
  }

  TraceResult Run() {
    Show();
    shown_seconds_ = 0;
    const double seconds = SecondsOf([&] {
      while (next_ < trace_.size() || !idle()) {
        if (idle()) WaitUntil(trace_[next_].arrival_s);
        for (; next_ < trace_.size() && trace_[next_].arrival_s <= now_; ++next_) Arrive(next_);
        if (!idle()) Step();
      }
    });
    out_.counts.real_seconds = seconds - shown_seconds_;
    for (const SimulatedGroup& group : groups_)
      out_.counts.preemptions += group.scheduler().preemptions();
    return std::move(out_);
  }

 private:
  // What rank 0 learns at the end of a step, which is after it has assigned the requests that came
  // during that step.
  struct News {
    SequenceId request = 0;
    std::optional<int32_t> token;
    int64_t prefill = 0;  // without a token: tokens left before the next one
    bool ended = false;
  };

  bool idle() const { return std::ranges::all_of(groups_, &SimulatedGroup::idle); }

  void WaitUntil(double arrival) {
    HearNews();
    if (arrival > now_) woken_ = true;
    now_ = std::max(now_, arrival);
  }

  void Arrive(size_t i) {
    const TraceRequest& request = trace_[i];
    Sequence s;
    s.spec.id = static_cast<SequenceId>(i);
    s.spec.max_len = std::ssize(request.tokens) + request.output_tokens;
    s.spec.priority = request.priority;
    s.tokens = request.tokens;
    auto given = choice_.Choose(
        s, [&](int64_t group) { return groups_[static_cast<size_t>(group)].HasRoom(s.length()); });
    if (!given) return End();
    choice_.Add(*given);
    groups_[static_cast<size_t>(given->group)].Add(std::move(s));
    given_.emplace(static_cast<SequenceId>(i), std::move(*given));
  }

  // All groups step together: a step takes as long as the slowest.
  void Step() {
    HearNews();
    std::vector<StepPlan> plans;
    std::vector<double> seconds;
    const bool woken = woken_;
    for (SimulatedGroup& group : groups_) {
      const StepPlan& plan = plans.emplace_back(group.Plan());
      if (!plan.steps.empty()) woken_ = false;
      seconds.push_back(plan.steps.empty() ? 0 : cost_.Of(ShapeOf(plan, woken), model_));
    }
    const double slowest = std::ranges::max(seconds);
    now_ += slowest;
    out_.counts.step_seconds += slowest;
    for (const double group_seconds : seconds) out_.counts.group_seconds += group_seconds;
    const auto computes = [](const StepPlan& plan) { return !plan.steps.empty(); };
    if (std::ranges::any_of(plans, computes)) ++out_.counts.steps;
    int64_t waiting = 0;
    int64_t used_pages = 0;
    for (size_t i = 0; i < plans.size(); ++i) {
      groups_[i].Advance(plans[i]);
      for (const SequenceStep& step : plans[i].steps)
        if (step.samples) Sample(groups_[i], *step.sequence);
      waiting += groups_[i].scheduler().waiting();
      used_pages += groups_[i].used_pages();
      for (const auto& [id, s] : groups_[i].sequences())
        if (const auto left = PrefillLeft(s)) news_.push_back({.request = id, .prefill = *left});
    }
    out_.counts.Note(waiting, slowest, used_pages);
  }

  static StepShape ShapeOf(const StepPlan& plan, bool woken) {
    StepShape shape;
    shape.woken = woken;
    for (const SequenceStep& step : plan.steps) {
      shape.pieces.push_back({step.chunk.count, step.chunk.cached_len, step.chunk.path});
      if (step.samples) ++shape.drawn;
    }
    return shape;
  }

  void Sample(SimulatedGroup& group, Sequence& s) {
    const SequenceId id = s.spec.id;
    RequestTimes& times = out_.requests[static_cast<size_t>(id)];
    if (times.token_s.empty()) out_.counts.prefix_hit_tokens += s.shared_len;
    times.token_s.push_back(now_);
    // No prompt contains this token, so no output is a prefix of another prompt by chance.
    const int32_t token = -1 - static_cast<int32_t>(id);
    const bool ended = group.Append(s, token);
    news_.push_back({.request = id, .token = token, .ended = ended});
    if (ended) End();
  }

  void HearNews() {
    for (const News& news : std::exchange(news_, {})) {
      GivenRequest& given = given_.at(news.request);
      if (news.token)
        choice_.Generated(given, *news.token);
      else
        choice_.Prefills(given, news.prefill);
      if (!news.ended) continue;
      choice_.Remove(given);
      given_.erase(news.request);
    }
  }

  // A request has ended or was refused.
  void End() {
    ++ended_;
    Show();
  }

  void Show() {
    if (progress_) shown_seconds_ += SecondsOf([&] { progress_(ended_, std::ssize(trace_), {}); });
  }

  std::span<const TraceRequest> trace_;
  StepModel model_;
  const StepCost& cost_;
  const JobProgress& progress_;
  GroupChoice choice_;
  std::deque<SimulatedGroup> groups_;  // a scheduler refers to its cache: they stay where they are
  std::map<SequenceId, GivenRequest> given_;  // requests that have not ended
  std::vector<News> news_;
  double now_ = 0;
  bool woken_ = false;  // the engine was idle before the next step
  size_t next_ = 0;     // next request to arrive
  int64_t ended_ = 0;
  double shown_seconds_ = 0;  // in progress_
  TraceResult out_;
};

}  // namespace

JsonOut TraceResult::Metrics() const { return MetricsJson(requests, counts); }

TraceResult Simulate(std::span<const TraceRequest> trace, const ModelConfig& config,
                     const Settings& settings, const StepCost& cost, const JobProgress& progress) {
  return Simulation(trace, config, settings, cost, progress).Run();
}

}  // namespace latte

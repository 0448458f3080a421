#include "src/jobs/simulate/simulate.h"

#include <algorithm>
#include <map>
#include <utility>

#include "src/base/json_out.h"
#include "src/engine/schedule/scheduler_rules.h"
#include "src/jobs/bench/bench_timer.h"

namespace latte {
namespace {

class Simulation {
 public:
  Simulation(std::span<const TraceRequest> trace, const ModelConfig& config,
             const Settings& settings, const StepCost& cost, const JobProgress& progress)
      : trace_(trace),
        model_{config.moe, settings.sparse_from},
        settings_(settings),
        cost_(cost),
        progress_(progress),
        cache_(CacheRules(settings)),
        scheduler_(SchedulerRules(settings, config.mla), cache_) {
    for (const TraceRequest& request : trace)
      out_.requests.push_back({request.arrival_s, std::ssize(request.tokens), {}});
    out_.counts.pages_total = settings.pages;
  }

  TraceResult Run() {
    Show();
    shown_seconds_ = 0;
    const double seconds = SecondsOf([&] {
      while (next_ < trace_.size() || !scheduler_.idle()) {
        if (scheduler_.idle()) WaitUntil(trace_[next_].arrival_s);
        for (; next_ < trace_.size() && trace_[next_].arrival_s <= now_; ++next_) Arrive(next_);
        if (!scheduler_.idle()) Step();
      }
    });
    out_.counts.real_seconds = seconds - shown_seconds_;
    out_.counts.preemptions = scheduler_.preemptions();
    return std::move(out_);
  }

 private:
  void WaitUntil(double arrival) {
    if (arrival > now_) woken_ = true;
    now_ = std::max(now_, arrival);
  }

  // Sequence i is request i.
  void Arrive(size_t i) {
    const TraceRequest& request = trace_[i];
    const auto prompt = std::ssize(request.tokens);
    if (queued_ >= settings_.options.max_queued_requests ||
        queued_tokens_ + prompt > settings_.options.max_queued_tokens)
      return End();
    ++queued_;
    queued_tokens_ += prompt;
    Sequence& s = sequences_[static_cast<SequenceId>(i)];
    s.spec.id = static_cast<SequenceId>(i);
    s.spec.max_len = prompt + request.output_tokens;
    s.spec.priority = request.priority;
    s.tokens = request.tokens;
    scheduler_.Add(s);
  }

  void Step() {
    const StepPlan plan = scheduler_.Plan();
    for (const Sequence* s : plan.admitted) {
      --queued_;
      queued_tokens_ -= s->prompt_len;
    }
    const double seconds = plan.steps.empty() ? 0 : cost_.Of(ShapeOf(plan), model_);
    now_ += seconds;
    out_.counts.step_seconds += seconds;
    if (!plan.steps.empty()) ++out_.counts.steps;
    scheduler_.Advance(plan);
    for (const SequenceStep& step : plan.steps)
      if (step.samples) Sample(*step.sequence);
    out_.counts.Note(scheduler_.waiting(), seconds, cache_.used_pages());
  }

  StepShape ShapeOf(const StepPlan& plan) {
    StepShape shape;
    shape.woken = std::exchange(woken_, false);
    for (const SequenceStep& step : plan.steps) {
      shape.pieces.push_back({step.chunk.count, step.chunk.cached_len, step.chunk.path});
      if (step.samples) ++shape.drawn;
    }
    return shape;
  }

  void Sample(Sequence& s) {
    const SequenceId id = s.spec.id;
    RequestTimes& times = out_.requests[static_cast<size_t>(id)];
    if (times.token_s.empty()) out_.counts.prefix_hit_tokens += s.shared_len;
    times.token_s.push_back(now_);
    if (s.length() + 1 == s.spec.max_len) {
      scheduler_.Remove(s);
      sequences_.erase(id);
      return End();
    }
    // No prompt contains this token, so no output is a prefix of another prompt by chance.
    scheduler_.Append(s, -1 - static_cast<int32_t>(id));
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
  const Settings& settings_;
  const StepCost& cost_;
  const JobProgress& progress_;
  CacheManager cache_;
  Scheduler scheduler_;
  std::map<SequenceId, Sequence> sequences_;
  double now_ = 0;
  bool woken_ = false;  // the engine was idle before the next step
  size_t next_ = 0;     // next request to arrive
  int64_t ended_ = 0;
  double shown_seconds_ = 0;  // in progress_
  int64_t queued_ = 0;
  int64_t queued_tokens_ = 0;
  TraceResult out_;
};

}  // namespace

JsonOut TraceResult::Metrics() const { return MetricsJson(requests, counts); }

TraceResult Simulate(std::span<const TraceRequest> trace, const ModelConfig& config,
                     const Settings& settings, const StepCost& cost, const JobProgress& progress) {
  return Simulation(trace, config, settings, cost, progress).Run();
}

}  // namespace latte

// A scheduler whose plans are printed as text, for readable traces.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "src/engine/schedule/scheduler.h"

namespace latte::testing_support {

using Tokens = std::vector<int32_t>;

// `count` tokens that are unique to `name`.
inline Tokens Own(char name, int64_t count) {
  Tokens out;
  for (int64_t i = 0; i < count; ++i) out.push_back(static_cast<int32_t>(name * 1000 + i));
  return out;
}

inline Tokens operator+(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Defaults: steps of 8 tokens, 4 sequences, latent prompts.
inline SchedulerOptions Small() {
  SchedulerOptions o;
  o.max_batch_tokens = 8;
  o.max_sequences = 4;
  o.min_chunk_tokens = 3;
  o.prompt_path = [](int64_t, int64_t) { return MlaPath::kLatent; };
  return o;
}

// Pages of 4 tokens.
inline CacheManagerOptions Pages(int64_t pages) { return {.pages = pages, .page_tokens = 4}; }

// Sequences are named by characters; the copies of p are q, r, …
class Trace {
 public:
  explicit Trace(SchedulerOptions options = Small(), CacheManagerOptions cache = Pages(64))
      : cache_(cache), scheduler_(std::move(options), cache_) {}

  void Add(char name, Tokens prompt, int64_t answer = 100, SequenceSpec spec = {}) {
    spec.id = name;
    spec.max_len = std::min(std::ssize(prompt) + answer, 4 * cache_.total_pages());
    scheduler_.Add(std::move(spec), std::move(prompt));
  }
  void Add(char name, int64_t prompt, int64_t answer = 100, SequenceSpec spec = {}) {
    Add(name, Own(name, prompt), answer, std::move(spec));
  }

  // Runs a step; sequences with a complete answer end.
  std::string Step() {
    const StepPlan plan = scheduler_.Plan();
    loads_ = plan.loads;
    ops_ = plan.ops;
    const std::string text = Text(plan);
    scheduler_.Advance(plan);
    std::vector<SequenceId> drawing;
    for (const SequenceStep& step : plan.steps)
      if (step.draws) drawing.push_back(step.sequence->spec.id);
    for (const SequenceId id : drawing) Draw(id);
    return text;
  }

  // Repeats the same step until `text`; returns the number of steps.
  int StepsUntil(const std::string& text) {
    for (int steps = 1; steps < 1000; ++steps)
      if (Step().find(text) != std::string::npos) return steps;
    return -1;
  }

  void Remove(char name) { scheduler_.Remove(name); }
  const Sequence& operator[](char name) const { return *scheduler_.Find(name); }
  Scheduler& scheduler() { return scheduler_; }
  const CacheManager& cache() const { return cache_; }
  const std::vector<PageLoad>& loads() const { return loads_; }  // of the last step
  const std::vector<PageOp>& ops() const { return ops_; }

 private:
  static std::string Text(const StepPlan& plan) {
    std::string out;
    for (const SequenceId id : plan.preempted) out += fmt::format("-{} ", static_cast<char>(id));
    for (const SequenceId id : plan.admitted) out += fmt::format("+{} ", static_cast<char>(id));
    for (const SequenceStep& step : plan.steps)
      out += fmt::format("{} {}-{}{}{} ", static_cast<char>(step.sequence->spec.id), step.begin,
                         step.begin + step.count, step.path == MlaPath::kAbsorbed ? 'A' : 'L',
                         step.draws ? "!" : "");
    if (!out.empty()) out.pop_back();
    return out;
  }

  void Draw(SequenceId id) {
    std::vector<SequenceId> all = {id};
    while (scheduler_.Find(id)->spec.answers > 1) {
      all.push_back(id + std::ssize(all));
      scheduler_.Fork(id, all.back());
    }
    for (const SequenceId each : all) {
      const Sequence& s = *scheduler_.Find(each);
      scheduler_.Append(each, static_cast<int32_t>(each * 1000 + 500 + s.length()));
      if (s.length() == s.spec.max_len) scheduler_.Remove(each);
    }
  }

  CacheManager cache_;
  Scheduler scheduler_;
  std::vector<PageLoad> loads_;
  std::vector<PageOp> ops_;
};

}  // namespace latte::testing_support

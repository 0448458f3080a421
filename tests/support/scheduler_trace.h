// A scheduler whose plans are printed as text, for readable traces.
#pragma once

#include <algorithm>
#include <map>
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
    Sequence& s = sequences_[name] = Sequence();
    s.spec = std::move(spec);
    s.spec.id = name;
    s.spec.max_len = std::min(std::ssize(prompt) + answer, 4 * cache_.total_pages());
    s.tokens = std::move(prompt);
    scheduler_.Add(s);
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
    for (const SequenceStep& step : plan.steps)
      if (step.samples) Sample(*step.sequence);
    return text;
  }

  // Repeats the same step until `text`; returns the number of steps.
  int StepsUntil(const std::string& text) {
    for (int steps = 1; steps < 1000; ++steps)
      if (Step().find(text) != std::string::npos) return steps;
    return -1;
  }

  // The `ahead`-th token that `name` samples from here on.
  int32_t Next(char name, int64_t ahead = 0) { return Next((*this)[name], ahead); }

  // Gives `name` drafts for its next step, as many as there is room for; returns how many.
  int64_t Draft(char name, Tokens drafts) {
    Sequence& s = (*this)[name];
    drafts.resize(static_cast<size_t>(scheduler_.ReserveDrafts(s, std::ssize(drafts))));
    s.drafts = std::move(drafts);
    return std::ssize(s.drafts);
  }

  void Remove(char name) { scheduler_.Remove((*this)[name]); }
  void Loaded(char name, int64_t pages) { scheduler_.Loaded((*this)[name], pages); }
  bool Ended(char name) const {
    return !sequences_.contains(name) || sequences_.at(name).state == SequenceState::kEnded;
  }
  Sequence& operator[](char name) { return sequences_.at(name); }
  Scheduler& scheduler() { return scheduler_; }
  const CacheManager& cache() const { return cache_; }
  const std::vector<PageLoad>& loads() const { return loads_; }  // of the last step
  const std::vector<PageOp>& ops() const { return ops_; }

 private:
  static int32_t Next(const Sequence& s, int64_t ahead) {
    return static_cast<int32_t>(s.spec.id * 1000 + 500 + s.length() + ahead);
  }

  static std::string Text(const StepPlan& plan) {
    std::string out;
    for (const Sequence* s : plan.preempted) out += fmt::format("-{} ", Name(*s));
    for (const Sequence* s : plan.admitted) out += fmt::format("+{} ", Name(*s));
    for (const SequenceStep& step : plan.steps)
      out += fmt::format("{} {}-{}{}{}{} ", Name(*step.sequence), step.chunk.cached_len,
                         step.chunk.total_len(), Letter(step.chunk.path), step.samples ? "!" : "",
                         std::string(static_cast<size_t>(step.drafts), '?'));
    if (!out.empty()) out.pop_back();
    return out;
  }

  static char Letter(MlaPath path) {
    switch (path) {
      case MlaPath::kAbsorbed:
        return 'A';
      case MlaPath::kLatent:
        return 'L';
      case MlaPath::kDecompressed:
        return 'D';
      case MlaPath::kSparse:
        return 'S';
    }
    return '?';
  }
  static char Name(const Sequence& s) { return static_cast<char>(s.spec.id); }

  void Sample(Sequence& first) {
    std::vector<Sequence*> all = {&first};
    while (first.spec.outputs > 1) {
      const auto name = static_cast<char>(Name(first) + std::ssize(all));
      Sequence& copy = sequences_[name] = first;
      copy.spec.id = name;
      scheduler_.Fork(first, copy);
      all.push_back(&copy);
    }
    for (Sequence* s : all) {
      bool more = true;  // a draft was right
      while (more && s->length() < s->spec.max_len) more = scheduler_.Append(*s, Next(*s, 0));
      if (s->length() == s->spec.max_len) scheduler_.Remove(*s);
    }
  }

  CacheManager cache_;
  Scheduler scheduler_;
  std::map<char, Sequence> sequences_;
  std::vector<PageLoad> loads_;
  std::vector<PageOp> ops_;
};

}  // namespace latte::testing_support

// A scheduler over a small cache, driven by bytes that select the pool, the prompts, cancellations,
// ends and pages from disk. A model of the memory records the tokens that each cached row was
// computed from, so a plan that reads missing rows, or overwrites rows that other sequences read,
// is detected.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "src/base/math.h"
#include "src/engine/schedule/scheduler.h"

namespace latte::testing_support {

// Choices made from bytes; when no bytes are left, always the simplest choice.
class Choices {
 public:
  explicit Choices(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  int64_t Below(int64_t n) { return done() ? 0 : bytes_[next_++] % n; }  // n <= 256
  bool OneIn(int64_t n) { return Below(n) == 1; }
  bool done() const { return next_ >= bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
  size_t next_ = 0;
};

struct ScheduleCounts {
  int64_t steps = 0;
  int64_t sequences = 0;
  int64_t forks = 0;
  int64_t preemptions = 0;
  int64_t loads = 0;
  int64_t shared_tokens = 0;
  int64_t copies = 0;
};

class ScheduleRun {
 public:
  explicit ScheduleRun(std::span<const uint8_t> bytes)
      : choices_(bytes),
        cache_(ChooseCache()),
        options_(ChooseOptions()),
        scheduler_(options_, cache_),
        rows_(static_cast<size_t>(cache_.total_pages() * cache_.page_tokens())) {}

  // Runs until the bytes are used up and every sequence has ended. Returns the claim that did not
  // hold, or an empty string.
  std::string Run() {
    while (problem_.empty() && !choices_.done()) {
      Disturb();
      Step();
    }
    int64_t bound = 50;
    for (const auto& [id, live] : live_) bound += 10 * live.sequence.spec.max_len;
    while (problem_.empty() && !scheduler_.idle()) {
      EndLoads();
      Step();
      Require(--bound > 0, "sequences that wait or run end some time");
    }
    Require(scheduler_.waiting() == 0 && scheduler_.running() == 0, "nobody is left");
    Require(cache_.used_pages() == 0, "no page is left in use");
    Require(cache_.available_pages() == cache_.total_pages(), "every page can be had again");
    return problem_;
  }

  const ScheduleCounts& counts() const { return counts_; }

 private:
  // A sequence, and its state computed without the scheduler.
  struct Live {
    Sequence sequence;
    std::vector<uint64_t> rows;       // expected content of each token's row
    std::map<int64_t, MlaPath> path;  // paths of tokens that were computed once
    int64_t next = -1;                // next token to compute; −1: the first after an admission
    int64_t to_load = 0;              // pages to load
  };

  void Require(bool holds, std::string_view claim) {
    if (!holds && problem_.empty())
      problem_ = fmt::format("step {}: does not hold: {}", counts_.steps, claim);
  }

  CacheManagerOptions ChooseCache() {
    CacheManagerOptions o;
    o.page_tokens = int64_t{1} << choices_.Below(4);
    o.pages = 4 + choices_.Below(29);
    o.prefix_cache = !choices_.OneIn(8);
    o.save_evicted = choices_.OneIn(2);
    return o;
  }

  SchedulerOptions ChooseOptions() {
    SchedulerOptions o;
    o.max_sequences = 1 + choices_.Below(8);
    o.max_batch_tokens = o.max_sequences + 1 + choices_.Below(24);
    o.aging_steps = 1 + choices_.Below(32);
    o.min_chunk_tokens = 1 + choices_.Below(12);
    o.share_generated = !choices_.OneIn(4);
    o.replay = !choices_.OneIn(4);
    o.decode_path = choices_.OneIn(4) ? MlaPath::kLatent : MlaPath::kAbsorbed;
    const int64_t border = choices_.Below(16);
    o.prompt_path = [border](int64_t new_tokens, int64_t) {
      return new_tokens < border ? MlaPath::kAbsorbed : MlaPath::kLatent;
    };
    o.pages_on_disk = [this](const Sequence&, int64_t) {
      return choices_.OneIn(4) ? 1 + choices_.Below(5) : 0;
    };
    return o;
  }

  // Arrivals, cancellations and pages that arrive from disk.
  void Disturb() {
    if (choices_.Below(4) < 2) Arrive();
    if (choices_.OneIn(10) && !live_.empty()) {
      auto at = live_.begin();
      std::advance(at, choices_.Below(std::min<int64_t>(std::ssize(live_), 256)));
      End(at->first);
    }
    EndLoads();
  }

  void Arrive() {
    const int64_t most = cache_.total_pages() * cache_.page_tokens();
    const int64_t group = choices_.Below(3);
    std::vector<int32_t> prompt;
    const int64_t shared = choices_.Below(5 * cache_.page_tokens());
    for (int64_t i = 0; i < shared; ++i) prompt.push_back(static_cast<int32_t>(i * group % 4));
    for (int64_t own = 1 + choices_.Below(12); own > 0; --own)
      prompt.push_back(static_cast<int32_t>(choices_.Below(4)));
    const auto length = std::ssize(prompt);
    if (length >= most) return;
    const SequenceId id = ++last_id_;
    Live& live = live_[id];
    SequenceSpec& spec = live.sequence.spec;
    spec.id = id;
    spec.salt = choices_.OneIn(4) ? "other" : "";
    spec.max_len = std::min(length + 1 + choices_.Below(20), most);
    spec.priority = static_cast<int>(choices_.Below(3)) - 1;
    spec.outputs = static_cast<int>(
        choices_.OneIn(3) ? 1 + choices_.Below(std::min<int64_t>(options_.max_sequences, 3)) : 1);
    spec.reuses_prefix = !choices_.OneIn(6);
    for (const int32_t token : prompt) Grow(live, spec.salt, token);
    live.sequence.tokens = std::move(prompt);
    scheduler_.Add(live.sequence);
    ++counts_.sequences;
  }

  static void Grow(Live& live, const std::string& salt, int32_t token) {
    uint64_t row = live.rows.empty() ? salt.size() + 1 : live.rows.back();
    row = (row ^ static_cast<uint64_t>(token + 1)) * 0x9e3779b97f4a7c15u;
    live.rows.push_back(row ^ (row >> 29));
  }

  void End(SequenceId id) {
    Sequence& s = live_.at(id).sequence;
    scheduler_.Remove(s);
    Require(s.state == SequenceState::kEnded && s.pages.empty(),
            "a removed sequence holds nothing");
    live_.erase(id);
    CheckPages();
  }

  void EndLoads() {
    for (auto& [id, live] : live_) {
      if (live.to_load == 0) continue;
      const int64_t choice = choices_.Below(4);
      if (choice > 1) continue;
      const int64_t came = choice == 0 ? live.to_load : choices_.Below(live.to_load + 1);
      Sequence& s = live.sequence;
      Require(s.state == SequenceState::kLoading, "who waits for pages from disk does not run");
      const int64_t first = s.shared_len;
      for (int64_t i = first; i < first + came * cache_.page_tokens(); ++i)
        Row(s, i) = live.rows[static_cast<size_t>(i)];
      live.to_load = 0;
      scheduler_.Loaded(s, came);
    }
  }

  void Step() {
    ++counts_.steps;
    const StepPlan plan = scheduler_.Plan();
    counts_.preemptions += std::ssize(plan.preempted);
    for (const Sequence* s : plan.preempted) live_.at(s->spec.id).next = -1;
    for (const Sequence* s : plan.admitted)
      Require(admitted_.insert(s->spec.id).second, "an admission is reported once");
    CheckPlan(plan);
    for (const PageOp& op : plan.ops) CarryOut(op);
    for (const PageLoad& load : plan.loads) ++live_.at(load.sequence->spec.id).to_load;
    counts_.loads += std::ssize(plan.loads);
    CountUsers();
    for (const SequenceStep& step : plan.steps) Compute(step);
    if (!problem_.empty()) return;
    scheduler_.Advance(plan);
    std::vector<SequenceId> sampling;
    for (const SequenceStep& step : plan.steps)
      if (step.samples) sampling.push_back(step.sequence->spec.id);
    for (const SequenceId id : sampling) Sample(id);
    CheckPages();
  }

  void CheckPlan(const StepPlan& plan) {
    int64_t tokens = 0;
    std::set<SequenceId> seen;
    MlaPath last = MlaPath::kAbsorbed;
    for (const SequenceStep& step : plan.steps) {
      tokens += step.chunk.count;
      Require(std::ssize(step.chunk.tokens) == step.chunk.count, "a chunk has its tokens");
      Require(step.chunk.count > 0, "a step computes something");
      Require(seen.insert(step.sequence->spec.id).second, "a sequence has one chunk per step");
      Require(last <= step.chunk.path, "chunks are sorted by path");
      last = step.chunk.path;
      Require(step.sequence->state == SequenceState::kRunning, "who computes runs");
    }
    Require(tokens == plan.tokens && tokens <= options_.max_batch_tokens, "the budget is kept");
    Require(scheduler_.running() <= options_.max_sequences, "not too many run");
    const bool loading = std::any_of(live_.begin(), live_.end(),
                                     [](const auto& one) { return one.second.to_load > 0; });
    Require(!plan.empty() || loading || scheduler_.idle(), "while there is work, some is done");
  }

  void CarryOut(const PageOp& op) {
    const int64_t page = cache_.page_tokens();
    if (op.kind == PageOp::Kind::kCopy) {
      std::copy_n(rows_.begin() + op.from * page, page, rows_.begin() + op.to * page);
      ++counts_.copies;
      return;
    }
    Live told;
    for (const int32_t token : op.prefix.tokens) Grow(told, op.prefix.salt, token);
    const bool same =
        std::equal(told.rows.end() - page, told.rows.end(), rows_.begin() + op.from * page);
    Require(same, "a saved page holds what is said of it");
  }

  void Compute(const SequenceStep& step) {
    const Sequence& s = *step.sequence;
    Live& live = live_.at(s.spec.id);
    if (live.next < 0) {
      counts_.shared_tokens += s.shared_len;
      live.next = s.shared_len;
    }
    const int64_t begin = step.chunk.cached_len;
    const int64_t end = step.chunk.total_len();
    const MlaPath path = step.chunk.path;
    Require(begin == live.next, "tokens are computed once and in order");
    Require(step.samples == (end == s.length()), "a token is sampled after the last one");
    Require(std::ssize(s.pages) * cache_.page_tokens() >= end, "there are pages for all tokens");
    Require(!options_.replay || (begin < s.prompt_len) == (end <= s.prompt_len),
            "a chunk lies on one side of the border between prompt and answer");
    if (!problem_.empty()) return;
    for (int64_t i = 0; i < begin; ++i)
      Require(Row(s, i) == live.rows[static_cast<size_t>(i)], "rows that are read are there");
    for (int64_t i = begin; i < end; ++i) {
      Require(users_[Page(s, i)] == 1, "nobody else uses a page that is written");
      Row(s, i) = live.rows[static_cast<size_t>(i)];
      const MlaPath before = live.path.emplace(i, path).first->second;
      Require(!options_.replay || before == path, "a token keeps its path");
      Require(!options_.replay || i < s.prompt_len || path == options_.decode_path,
              "generated tokens have their own path");
    }
    live.next = end;
  }

  void Sample(SequenceId id) {
    Sequence& first = live_.at(id).sequence;
    std::vector<SequenceId> all = {id};
    while (first.spec.outputs > 1) {
      Live& copy = live_.emplace(++last_id_, live_.at(id)).first->second;
      copy.sequence.spec.id = last_id_;
      scheduler_.Fork(first, copy.sequence);
      all.push_back(last_id_);
      ++counts_.forks;
    }
    for (const SequenceId each : all) {
      Live& live = live_.at(each);
      Sequence& s = live.sequence;
      if (s.length() == s.spec.max_len || choices_.OneIn(10)) {
        End(each);
        continue;
      }
      const auto token = static_cast<int32_t>(choices_.Below(4));
      Grow(live, s.spec.salt, token);
      scheduler_.Append(s, token);
    }
  }

  void CountUsers() {
    users_.clear();
    for (const auto& [id, live] : live_)
      for (const int32_t page : live.sequence.pages) ++users_[page];
  }

  void CheckPages() {
    CountUsers();
    Require(std::ssize(users_) == cache_.used_pages(), "pages in use belong to sequences");
    int64_t places = 0;
    for (const auto& [id, live] : live_) {
      const Sequence& s = live.sequence;
      if (s.state != SequenceState::kWaiting) places += s.spec.outputs;
      Require(s.state != SequenceState::kWaiting ||
                  std::ssize(s.pages) == CeilDiv(s.shared_len, cache_.page_tokens()),
              "who waits holds what it shares and no more");
    }
    Require(places <= options_.max_sequences, "there is a place for every answer");
  }

  int32_t Page(const Sequence& s, int64_t i) const {
    return s.pages[static_cast<size_t>(i / cache_.page_tokens())];
  }
  uint64_t& Row(const Sequence& s, int64_t i) {
    const int64_t page = cache_.page_tokens();
    return rows_[static_cast<size_t>(Page(s, i) * page + i % page)];
  }

  Choices choices_;
  CacheManager cache_;
  SchedulerOptions options_;
  Scheduler scheduler_;
  std::vector<uint64_t> rows_;  // [page·P + index]: a digest of the tokens up to that one
  std::map<SequenceId, Live> live_;
  std::map<int32_t, int> users_;  // number of sequences per page
  std::set<SequenceId> admitted_;
  SequenceId last_id_ = 0;
  ScheduleCounts counts_;
  std::string problem_;
};

}  // namespace latte::testing_support

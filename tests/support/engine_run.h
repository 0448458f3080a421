// An engine over any model, the answers so far, and errors in its events.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/engine/core/engine_core.h"

namespace latte::testing_support {

// The result of one answer.
struct Outcome {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<float> prompt_logprobs;
  std::optional<FinishReason> finish;
  Error error;
  int64_t cached_tokens = 0;
};

// Use from one thread, except where Engine documents otherwise for Submit, Cancel and Stats.
class EngineRun {
 public:
  // Called for every answer that ends; its outcome is then forgotten.
  using OnEnd = std::function<void(RequestId, int choice, const Outcome&)>;
  using Key = std::pair<RequestId, int>;

  // `rates` make the choice of paths independent of the processor.
  [[nodiscard]] static Result<std::unique_ptr<EngineRun>> Create(
      const Model& model, const EngineOptions& options, const ModelKey& key = {},
      const std::optional<MlaRates>& rates = {}, StepAnnouncer* followers = nullptr) {
    LATTE_ASSIGN_OR_RETURN(const Machine machine, Machine::Detect());
    LATTE_ASSIGN_OR_RETURN(Settings settings,
                           ResolveOptions(options, model.config(), machine, {int64_t{1} << 30}));
    if (rates) settings.rates = *rates;
    const auto owner = std::make_shared<Machine>(machine);
    return Over({.model = &model, .machine = owner.get(), .owner = owner, .followers = followers},
                settings, key);
  }

  [[nodiscard]] static Result<std::unique_ptr<EngineRun>> Over(const EngineParts& parts,
                                                               const Settings& settings,
                                                               const ModelKey& key = {}) {
    std::unique_ptr<EngineRun> run(new EngineRun);
    LATTE_ASSIGN_OR_RETURN(run->core_, EngineCore::Create(parts, settings, key));
    run->core_->SetEventSink([at = run.get()](std::span<const TokenEvent> events) {
      for (const TokenEvent& e : events) at->Take(e);
      if (at->on_events) at->on_events(events);
    });
    return run;
  }

  EngineCore& core() { return *core_; }
  const std::map<Key, Outcome>& outcomes() const { return outcomes_; }
  const Outcome& Of(RequestId id, int choice = 0) { return outcomes_[{id, choice}]; }
  const std::vector<std::string>& problems() const { return problems_; }

  OnEnd on_end;
  Engine::EventSink on_events;

  // Runs steps until no work is left. Returns the first error; empty if there is none.
  std::string Finish(double seconds_without_news = 10) {
    using Clock = std::chrono::steady_clock;
    const auto patience = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(seconds_without_news));
    while (true) {
      if (core_->WaitForWork(Clock::now())) {
        if (const Status s = core_->Step(); !s) return ToString(s.error());
        continue;
      }
      const EngineStats stats = core_->Stats();
      if (stats.running + stats.waiting == 0) break;
      if (!core_->WaitForWork(Clock::now() + patience))
        return fmt::format("stuck with {} running, {} waiting", stats.running, stats.waiting);
    }
    return Leftovers();
  }

  // The resources that an idle engine still holds; empty if there are none.
  std::string Leftovers() const {
    const EngineStats stats = core_->Stats();
    if (stats.running + stats.waiting != 0 || stats.pages_used != 0)
      return fmt::format("left over: {} running, {} waiting, {} pages used", stats.running,
                         stats.waiting, stats.pages_used);
    return problems_.empty() ? "" : problems_.front();
  }

 private:
  EngineRun() = default;

  void Take(const TokenEvent& e) {
    const Key key{e.request, e.choice};
    if (ended_.contains(key))
      problems_.push_back(fmt::format("request {}: an event after the last", e.request));
    Outcome& out = outcomes_[key];
    if (e.token) out.tokens.push_back(*e.token);
    if (e.logprobs) out.logprobs.push_back(e.logprobs->chosen.logprob);
    for (const TokenLogprobs& t : e.prompt_logprobs)
      out.prompt_logprobs.push_back(t.chosen.logprob);
    if (e.generated_tokens != std::ssize(out.tokens))
      problems_.push_back(fmt::format("request {}: {} generated tokens told, {} events had one",
                                      e.request, e.generated_tokens, out.tokens.size()));
    out.finish = e.finish;
    out.error = e.error;
    out.cached_tokens = e.cached_tokens;
    if (!e.finish) return;
    if (on_end) {
      on_end(e.request, e.choice, out);
      outcomes_.erase(key);
    } else {
      ended_.insert(key);
    }
  }

  std::unique_ptr<EngineCore> core_;
  std::map<Key, Outcome> outcomes_;
  std::set<Key> ended_;  // empty with on_end, whose caller must detect a second end
  std::vector<std::string> problems_;
};

}  // namespace latte::testing_support

// An engine without a model: a test determines its answers, their times and its errors.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "latte/engine.h"

namespace latte::testing_support {

// For one thread. It records what is submitted and cancelled; each Step delivers the events of one
// entry of `steps`.
class FakeEngine final : public Engine {
 public:
  // Decides on a request before it is accepted; its error is Submit's.
  std::function<Status(const Request&)> on_submit;
  // Called by Step before anything else, to add to `steps`; its error is Step's.
  std::function<Status()> on_step;
  std::deque<std::vector<TokenEvent>> steps;

  Result<RequestId> Submit(Request request) override {
    if (on_submit) LATTE_RETURN_IF_ERROR(on_submit(request));
    requests_.push_back(std::move(request));
    return requests_.size();
  }
  void Cancel(RequestId id) override { cancelled_.push_back(id); }
  void SetEventSink(EventSink sink) override { sink_ = std::move(sink); }
  Status Step() override {
    ++stats_.steps;
    if (on_step) LATTE_RETURN_IF_ERROR(on_step());
    if (steps.empty()) return {};
    const std::vector<TokenEvent> events = std::exchange(steps.front(), {});
    steps.pop_front();
    if (sink_ && !events.empty()) sink_(events);
    return {};
  }
  bool WaitForWork(std::chrono::steady_clock::time_point) override { return !steps.empty(); }
  void Wake() override {}
  Status SavePrefixes() override { return {}; }
  EngineStats Stats() const override { return stats_; }
  const EngineOptions& options() const override { return options_; }

  // The event of the request with this id: a token, or without one only text or an end.
  TokenEvent Event(RequestId id, std::string text, std::optional<FinishReason> finish = {}) const {
    TokenEvent event;
    event.request = id;
    event.user_data = requests_[id - 1].user_data;
    event.prompt_tokens = static_cast<int64_t>(requests_[id - 1].tokens.size());
    event.text = std::move(text);
    event.finish = finish;
    return event;
  }

  const std::vector<Request>& requests() const { return requests_; }  // request i has the id i + 1
  const std::vector<RequestId>& cancelled() const { return cancelled_; }

 private:
  EventSink sink_;
  EngineOptions options_;
  EngineStats stats_;
  std::vector<Request> requests_;
  std::vector<RequestId> cancelled_;
};

}  // namespace latte::testing_support

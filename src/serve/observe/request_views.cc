#include "src/serve/observe/request_views.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/base/json_out.h"

namespace latte {
namespace {

constexpr size_t kMostEnded = 32;

double Seconds(RequestView::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

JsonOut ViewJson(const RequestView& view) {
  const RequestView::Clock::time_point end = view.ended.value_or(RequestView::Clock::now());
  JsonOut out = {{"id", view.id},
                 {"endpoint", view.endpoint},
                 {"state", Name(view.phase)},
                 {"client", view.peer},
                 {"stream", view.stream},
                 {"n", view.n},
                 {"prompts", view.prompts},
                 {"priority", view.priority},
                 {"prompt_tokens", view.prompt_tokens},
                 {"cached_tokens", view.cached_tokens},
                 {"generated_tokens", view.generated_tokens},
                 {"age_seconds", Seconds(end - view.arrived)},
                 {"time_to_first_token", nullptr}};
  if (view.first_token) out["time_to_first_token"] = Seconds(*view.first_token - view.arrived);
  if (view.ended) out["outcome"] = view.outcome;
  return out;
}

}  // namespace

std::string_view Name(RequestPhase phase) {
  switch (phase) {
    case RequestPhase::kParsing:
      return "parsing";
    case RequestPhase::kWaiting:
      return "waiting";
    case RequestPhase::kRunning:
      return "running";
    case RequestPhase::kEnded:
      break;
  }
  return "ended";
}

RequestView* RequestViews::Find(const std::string& id) {
  const auto found = live_.find(id);
  return found == live_.end() ? nullptr : &found->second;
}

void RequestViews::End(const std::string& id, std::string outcome) {
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  RequestView view = std::move(found->second);
  live_.erase(found);
  view.phase = RequestPhase::kEnded;
  view.ended = RequestView::Clock::now();
  view.outcome = std::move(outcome);
  ended_.push_back(std::move(view));
  if (ended_.size() > kMostEnded) ended_.pop_front();
}

std::string RequestViews::Json() const {
  std::vector<const RequestView*> live;
  for (const auto& [id, view] : live_) live.push_back(&view);
  std::sort(live.begin(), live.end(),
            [](const RequestView* a, const RequestView* b) { return a->arrived < b->arrived; });
  JsonOut out = {{"running", JsonOut::array()}, {"ended", JsonOut::array()}};
  for (const RequestView* view : live) out["running"].push_back(ViewJson(*view));
  for (const RequestView& view : ended_) out["ended"].push_back(ViewJson(view));
  return Dump(out);
}

}  // namespace latte

#include "src/serve/observe/request_views.h"

#include <cmath>
#include <utility>

#include "src/base/json_out.h"

namespace latte {
namespace {

// To the millisecond, so that the digits mean something.
double Seconds(RequestViews::Clock::duration time) {
  return std::round(std::chrono::duration<double>(time).count() * 1000) / 1000;
}

}  // namespace

std::string_view RequestViews::Name(State state) {
  switch (state) {
    case State::kParsing:
      return "parsing";
    case State::kWaiting:
      return "waiting";
    case State::kPrefill:
      return "prefill";
    case State::kRunning:
      return "running";
    case State::kFinished:
      break;
  }
  return "finished";
}

RequestViews::View* RequestViews::Find(const std::string& id) {
  const auto key = by_id_.find(id);
  return key == by_id_.end() ? nullptr : &running_.at(key->second);
}

void RequestViews::Began(const std::string& id, std::string_view endpoint, std::string_view client,
                         Time now) {
  View view;
  view.id = id;
  view.endpoint = endpoint;
  view.client = client;
  view.began = now;
  if (!by_id_.emplace(id, next_).second) return;
  running_.emplace(next_++, std::move(view));
}

void RequestViews::Parsed(const std::string& id, const RequestSummary& summary) {
  View* view = Find(id);
  if (view == nullptr) return;
  view->summary = summary;
  view->state = State::kWaiting;
}

void RequestViews::Prefill(const std::string& id) {
  View* view = Find(id);
  if (view != nullptr && view->state == State::kWaiting) view->state = State::kPrefill;
}

void RequestViews::Event(const std::string& id, const TokenEvent& event, Time now) {
  View* view = Find(id);
  if (view == nullptr) return;
  if (event.token) {
    ++view->generated_tokens;
    view->state = State::kRunning;
    if (!view->first_token) view->first_token = now;
  }
  // Every prompt counts once: with the first token of its first answer, or its end without any.
  const bool is_first = event.token ? event.generated_tokens == 1 : event.generated_tokens == 0;
  if (event.choice != 0 || !is_first) return;
  view->prompt_tokens += event.prompt_tokens;
  view->cached_tokens += event.cached_tokens;
}

void RequestViews::Ended(const std::string& id, std::string_view result, Time now) {
  const auto key = by_id_.find(id);
  if (key == by_id_.end()) return;
  const auto place = running_.find(key->second);
  View view = std::move(place->second);
  running_.erase(place);
  by_id_.erase(key);
  view.state = State::kFinished;
  view.ended = now;
  view.result = result;
  finished_.push_front(std::move(view));
  if (finished_.size() > kMostFinished) finished_.pop_back();
}

JsonOut RequestViews::ToJson(const View& view, Time now) {
  JsonOut out = {
      {"id", view.id},
      {"endpoint", view.endpoint},
      {"model", view.summary.model},
      {"client", view.client},
      {"state", Name(view.state)},
      {"age_seconds", Seconds(now - view.began)},
      {"stream", view.summary.stream},
      {"n", view.summary.n},
      {"prompts", view.summary.prompts},
      {"priority", view.summary.priority},
      {"prompt_tokens", view.prompt_tokens},
      {"cached_tokens", view.cached_tokens},
      {"generated_tokens", view.generated_tokens},
      {"ttft_seconds", nullptr},
  };
  if (view.first_token) out["ttft_seconds"] = Seconds(*view.first_token - view.began);
  if (!view.ended) return out;
  out["result"] = view.result;
  out["duration_seconds"] = Seconds(*view.ended - view.began);
  return out;
}

std::string RequestViews::Json(Time now) const {
  JsonOut running = JsonOut::array();
  for (const auto& [key, view] : running_) {
    if (running.size() == kMostShown) break;
    running.push_back(ToJson(view, now));
  }
  JsonOut finished = JsonOut::array();
  for (const View& view : finished_) finished.push_back(ToJson(view, now));
  return Dump({{"running", running_.size()},
               {"requests", std::move(running)},
               {"finished", std::move(finished)}});
}

}  // namespace latte

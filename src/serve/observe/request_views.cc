#include "src/serve/observe/request_views.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "src/base/timer.h"
#include "src/serve/observe/log_text.h"

namespace latte {
namespace {

using Time = ServedRequest::Time;
using State = ServedRequest::State;

constexpr size_t kMostTextBytes = 500;

std::string_view Name(State state) {
  switch (state) {
    case State::kParsing:
      return "parsing";
    case State::kWaiting:
      return "waiting";
    case State::kRunning:
      return "running";
    case State::kFinished:
      break;
  }
  return "finished";
}

// Written without a tree of values: the thread that calls this serves all streams, and there may be
// a thousand requests.
void AppendJson(const ServedRequest& view, Time now, std::string* out) {
  const auto text = [out](std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(*out), "\"{}\":\"", name);
    AppendEscaped(value, kMostTextBytes, out);
    *out += "\",";
  };
  *out += '{';
  text("id", view.id);
  text("endpoint", view.endpoint);
  text("model", view.summary.model);
  text("client", view.client);
  text("state", Name(view.state));
  if (view.ended) text("result", view.result);
  const auto seconds = [](std::optional<Time> from, std::optional<Time> to) {
    return from && to ? fmt::format("{:.3f}", Seconds(*to - *from)) : std::string("null");
  };
  fmt::format_to(std::back_inserter(*out),
                 "\"age_seconds\":{},\"stream\":{},\"n\":{},\"prompts\":{},\"priority\":{},"
                 "\"prompt_tokens\":{},\"cached_tokens\":{},\"generated_tokens\":{},"
                 "\"ttft_seconds\":{},\"duration_seconds\":{}}}",
                 seconds(view.began, now), view.summary.stream, view.summary.n,
                 view.summary.prompts, view.summary.priority, view.prompt_tokens,
                 view.cached_tokens, view.generated_tokens, seconds(view.began, view.first_token),
                 seconds(view.began, view.ended));
}

}  // namespace

ServedRequest* RequestViews::Find(const std::string& id) {
  const auto key = by_id_.find(id);
  return key == by_id_.end() ? nullptr : &running_.at(key->second);
}

void RequestViews::Began(const std::string& id, std::string_view endpoint, std::string_view client,
                         Time now) {
  ServedRequest view;
  view.id = id;
  view.endpoint = endpoint;
  view.client = client;
  view.began = now;
  if (by_id_.contains(id)) return;
  // In this order, an id never names what is not there, whatever memory runs out.
  running_.emplace(next_, std::move(view));
  try {
    by_id_.emplace(id, next_);
  } catch (...) {
    running_.erase(next_);
    throw;
  }
  ++next_;
}

void RequestViews::Parsed(const std::string& id, const RequestSummary& summary) {
  ServedRequest* view = Find(id);
  if (view == nullptr) return;
  view->summary = summary;
  view->state = State::kWaiting;
}

void RequestViews::Event(const std::string& id, const TokenEvent& event, Time now) {
  ServedRequest* view = Find(id);
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
  ServedRequest view = std::move(running_.extract(key->second).mapped());
  by_id_.erase(key);
  view.state = State::kFinished;
  view.ended = now;
  view.result = result;
  view.answers.clear();
  finished_.push_front(std::move(view));
  if (finished_.size() > kMostFinished) finished_.pop_back();
}

void RequestViews::Forget(const std::string& id) {
  const auto key = by_id_.find(id);
  if (key == by_id_.end()) return;
  running_.erase(key->second);
  by_id_.erase(key);
}

std::string RequestViews::Json(Time now) const {
  std::string out = fmt::format("{{\"running\":{},\"requests\":[", running_.size());
  size_t shown = 0;
  for (const auto& [key, view] : running_) {
    if (shown == kMostShown) break;
    if (shown++ > 0) out += ',';
    AppendJson(view, now, &out);
  }
  out += "],\"finished\":[";
  for (const ServedRequest& view : finished_) {
    if (&view != &finished_.front()) out += ',';
    AppendJson(view, now, &out);
  }
  return out + "]}";
}

}  // namespace latte

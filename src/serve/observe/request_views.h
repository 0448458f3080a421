// The live view of requests behind GET /requests. It never has the text of a prompt or an answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace latte {

enum class RequestPhase { kParsing, kWaiting, kRunning, kEnded };

std::string_view Name(RequestPhase phase);  // "waiting"

struct RequestView {
  using Clock = std::chrono::steady_clock;

  std::string id;
  std::string_view endpoint;  // "/v1/completions"
  std::string peer;
  RequestPhase phase = RequestPhase::kParsing;
  bool stream = false;
  int n = 1;
  int64_t prompts = 1;
  int priority = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t generated_tokens = 0;
  Clock::time_point arrived = Clock::now();
  std::optional<Clock::time_point> first_token;
  std::optional<Clock::time_point> ended;
  std::string outcome;  // once ended: "done" or the name of an error
};

// On one thread.
class RequestViews {
 public:
  // The view of a request, made if it is new. Valid until End.
  RequestView& At(const std::string& id) { return live_[id]; }
  RequestView* Find(const std::string& id);
  // Moves the request to those that have ended; the last 32 are kept.
  void End(const std::string& id, std::string outcome);

  // {"running": […], "ended": […]}: oldest first.
  std::string Json() const;

 private:
  std::map<std::string, RequestView> live_;
  std::deque<RequestView> ended_;
};

}  // namespace latte

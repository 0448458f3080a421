// The running and the last finished requests: the body of GET /requests, and the figures of a
// request for log and metrics, but never its text. On the I/O thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "latte/request.h"

#include "src/serve/observe/metrics.h"

namespace latte {

// Settings of a request, known once it is parsed.
struct RequestSummary {
  std::string model;
  int64_t prompts = 1;
  int n = 1;  // answers per prompt
  bool stream = false;
  int priority = 0;
  int64_t max_tokens = 0;  // of an answer
};

// A request from its arrival to its end.
struct ServedRequest {
  using Time = std::chrono::steady_clock::time_point;
  enum class State { kParsing, kWaiting, kRunning, kFinished };
  // One answer to a prompt.
  struct Answer {
    std::optional<Time> first_token;
    Time last_token;
    FinishedRequest figures;
    bool finished = false;
  };

  std::string id;
  std::string endpoint;
  std::string client;
  RequestSummary summary;
  State state = State::kParsing;
  Time began;
  std::optional<Time> first_token;
  std::optional<Time> ended;
  std::string result;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t generated_tokens = 0;
  std::map<std::pair<uint64_t, int>, Answer> answers;  // by Request::user_data, TokenEvent::choice
};

class RequestViews {
 public:
  using Time = ServedRequest::Time;

  static constexpr size_t kMostFinished = 32;  // the last so many are kept
  static constexpr size_t kMostShown = 1000;   // of the running ones, the oldest

  // `id` must not be one of a running request. `client`: its address. → state "parsing"
  void Began(const std::string& id, std::string_view endpoint, std::string_view client, Time now);
  // The running request with this id, or null.
  ServedRequest* Find(const std::string& id);
  // → "waiting" for the first token
  void Parsed(const std::string& id, const RequestSummary& summary);
  // The first token: → "running"
  void Event(const std::string& id, const TokenEvent& event, Time now);
  // `result`: a finish reason or the name of an error's code. Moves it to the finished ones.
  void Ended(const std::string& id, std::string_view result, Time now);
  // It does not run any more, if it did, and is not one of the finished ones.
  void Forget(const std::string& id);

  size_t size() const { return running_.size(); }

  // {"running": N, "requests": [{"id", "endpoint", "model", "client", "state", "age_seconds",
  // "stream", "n", "prompts", "priority", "prompt_tokens", "cached_tokens", "generated_tokens",
  // "ttft_seconds", "duration_seconds"}, …], "finished": [{…, "result"}, …]}, running ones from the
  // oldest, finished ones from the newest. Null: ttft_seconds before the first token,
  // duration_seconds before the end.
  std::string Json(Time now) const;

 private:
  uint64_t next_ = 0;
  std::map<uint64_t, ServedRequest> running_;        // by age
  std::unordered_map<std::string, uint64_t> by_id_;  // → key of running_
  std::deque<ServedRequest> finished_;               // newest first, without answers
};

}  // namespace latte

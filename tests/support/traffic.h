// Random requests to an engine, submitted and cancelled at random moments. The result of every
// answer is compared with the expected one. The same seed gives the same requests.
#pragma once

#include <algorithm>
#include <limits>

#include "tests/support/engine_run.h"
#include "tests/support/plain_answer.h"

namespace latte::testing_support {

struct TrafficOptions {
  uint64_t seed = 1;
  int64_t requests = 100;
  int64_t at_once = 12;     // number of open requests
  int64_t max_prompt = 90;  // in tokens
  int64_t max_answer = 36;
  int max_answers = 4;  // per request
  int64_t max_tokens = 128;
  int32_t vocab = kFirstRareToken;
  int cancelled = 10;   // percentage of requests
  int failing = 0;      // percentage of requests; their prompt ends with a rare token, which causes
                        // a fault
  bool compare = true;  // compare with AnswerPlainly
  FakeModel::Fault fault;
};

// The fault of the requests that must fail.
inline std::optional<float> FaultOfRareTokens(int32_t token, int64_t) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  switch (token - kFirstRareToken) {
    case 0:
      return std::numeric_limits<float>::quiet_NaN();
    case 1:
      return kInf;
    case 2:
      return -kInf;
    default:
      return std::nullopt;
  }
}

// Engine-thread only.
class Traffic {
 public:
  Traffic(EngineRun& run, const TrafficOptions& options)
      : run_(run), options_(options), random_(options.seed) {
    run_.on_end = [this](RequestId id, int choice, const Outcome& out) { Check(id, choice, out); };
  }
  ~Traffic() { run_.on_end = {}; }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  // Runs all requests to their ends. Returns the first error; empty if there is none.
  std::string Run() {
    while (submitted_ < options_.requests) Turn();
    const std::string left = run_.Finish();
    if (problem_.empty()) problem_ = left;
    if (problem_.empty() && !open_.empty()) problem_ = "a request without an end";
    return problem_;
  }

  // Perhaps a request, perhaps a cancellation, and a step.
  void Turn() {
    while (submitted_ < options_.requests && std::ssize(open_) < options_.at_once && Chance(60))
      Submit();
    for (auto& [id, open] : open_)
      if (open.will_cancel && Chance(15)) Cancel(id, open);
    if (Chance(3)) run_.core().Cancel(10 * random_.Below(1000) + 7'000'000);  // an unused id
    if (run_.core().WaitForWork(std::chrono::steady_clock::now()))
      if (const Status s = run_.core().Step(); !s) problem_ = ToString(s.error());
  }

  int64_t submitted() const { return submitted_; }
  const std::string& problem() const { return problem_; }

 private:
  struct Open {
    Request request;
    std::vector<bool> ended;  // by choice
    bool will_cancel = false;
  };

  int64_t Below(int64_t n) { return static_cast<int64_t>(random_.Below(static_cast<uint64_t>(n))); }
  bool Chance(int percent) { return Below(100) < percent; }
  int32_t Token() { return static_cast<int32_t>(Below(options_.vocab)); }

  // Prompts of a few families have common prefixes; others continue an earlier answer.
  std::vector<int32_t> Prompt() {
    std::vector<int32_t> out;
    const int64_t length = 1 + Below(options_.max_prompt);
    if (Chance(25) && !earlier_.empty()) {
      out = earlier_[static_cast<size_t>(Below(std::ssize(earlier_)))];
    } else {
      Random family(77, random_.Below(4));
      const int64_t common = Below(length + 1);
      for (int64_t i = 0; i < common; ++i)
        out.push_back(static_cast<int32_t>(family.Below(static_cast<uint64_t>(options_.vocab))));
    }
    while (std::ssize(out) < length) out.push_back(Token());
    out.resize(static_cast<size_t>(std::min<int64_t>(std::ssize(out), options_.max_prompt)));
    return out;
  }

  Request NewRequest() {
    Request r;
    r.tokens = Prompt();
    if (Below(100) < options_.failing)
      r.tokens.back() = kFirstRareToken + static_cast<int32_t>(Below(3));
    r.sampling.seed = random_.Below(1000);
    r.sampling.temperature = Chance(20) ? 0.0 : 0.9;
    if (Chance(20)) r.sampling.repetition_penalty = 1.3;
    if (Chance(20)) r.sampling.frequency_penalty = 0.5;
    r.stop.max_tokens = 1 + Below(options_.max_answer);
    if (Chance(30)) r.stop.tokens = {Token(), Token(), Token()};
    if (Chance(20)) r.stop.min_tokens = Below(std::min<int64_t>(6, r.stop.max_tokens + 1));
    r.stop.ignore_eos = true;
    r.n = 1 + static_cast<int>(Chance(25) ? Below(options_.max_answers) : 0);
    r.logprobs = Chance(50) ? 0 : -1;
    r.prompt_logprobs = Chance(10) ? 0 : -1;
    r.priority = static_cast<int>(Below(3)) - 1;
    if (Chance(20)) r.cache_salt = "other";
    return r;
  }

  void Submit() {
    Open open;
    open.request = NewRequest();
    open.ended.resize(static_cast<size_t>(open.request.n));
    open.will_cancel = Below(100) < options_.cancelled;
    const Result<RequestId> id = run_.core().Submit(open.request);
    ++submitted_;
    if (id)
      open_.emplace(*id, std::move(open));
    else
      problem_ = ToString(id.error());
  }

  void Cancel(RequestId id, Open& open) {
    run_.core().Cancel(id);
    open.will_cancel = false;
    cancelled_.insert(id);
  }

  void Check(RequestId id, int choice, const Outcome& out) {
    const auto found = open_.find(id);
    if (found == open_.end() || found->second.ended[static_cast<size_t>(choice)]) {
      problem_ = fmt::format("request {}, answer {}: a second end", id, choice);
      return;
    }
    Open& open = found->second;
    open.ended[static_cast<size_t>(choice)] = true;
    if (out.finish == FinishReason::kCancelled && !cancelled_.contains(id))
      problem_ = fmt::format("request {}: cancelled by nobody", id);
    if (problem_.empty() && options_.compare) problem_ = Compare(id, choice, open.request, out);
    if (std::ranges::count(open.ended, false) > 0) return;
    if (out.finish == FinishReason::kLength) KeepForLater(open.request, out);
    cancelled_.erase(id);
    open_.erase(found);
  }

  void KeepForLater(const Request& request, const Outcome& out) {
    constexpr size_t kMany = 16;
    std::vector<int32_t> tokens = request.tokens;
    tokens.insert(tokens.end(), out.tokens.begin(), out.tokens.end());
    if (earlier_.size() < kMany)
      earlier_.push_back(std::move(tokens));
    else
      earlier_[random_.Below(kMany)] = std::move(tokens);
  }

  std::string Compare(RequestId id, int choice, const Request& request, const Outcome& out) const {
    const PlainAnswer plain = AnswerPlainly(request, choice, options_.max_tokens, options_.fault);
    const auto wrong = [&](std::string_view what) {
      return fmt::format("request {}, answer {} after {} tokens of prompt: {}", id, choice,
                         request.tokens.size(), what);
    };
    const bool whole = out.finish != FinishReason::kCancelled;
    if (whole ? out.tokens != plain.tokens : !IsBeginning(out.tokens, plain.tokens))
      return wrong("other tokens");
    if (whole ? out.logprobs != plain.logprobs : !IsBeginning(out.logprobs, plain.logprobs))
      return wrong("other logprobs");
    if (whole && out.finish != plain.finish)
      return wrong(
          fmt::format("ends by '{}', expected '{}'", Name(*out.finish), Name(plain.finish)));
    if (whole && out.prompt_logprobs != plain.prompt_logprobs)
      return wrong("other logprobs of the prompt");
    if (out.finish == FinishReason::kError && out.error.code != Code::kCorrupt)
      return wrong(ToString(out.error));
    return "";
  }

  template <class T>
  static bool IsBeginning(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() <= b.size() && std::equal(a.begin(), a.end(), b.begin());
  }

  EngineRun& run_;
  const TrafficOptions options_;
  Random random_;
  std::map<RequestId, Open> open_;
  std::set<RequestId> cancelled_;
  std::vector<std::vector<int32_t>> earlier_;  // prompts with their answers
  int64_t submitted_ = 0;
  std::string problem_;  // the first problem found
};

}  // namespace latte::testing_support

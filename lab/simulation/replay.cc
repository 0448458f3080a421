#include "lab/simulation/replay.h"

#include <algorithm>
#include <thread>

#include "src/base/timer.h"
#include "src/jobs/bench/bench_timer.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

Request RequestOf(const TraceRequest& from, uint64_t seed) {
  Request out;
  out.tokens = from.tokens;
  out.priority = from.priority;
  out.sampling.seed = seed;
  out.stop.max_tokens = from.output_tokens;
  out.stop.ignore_eos = true;
  return out;
}

class Server {
 public:
  Server(std::span<const TraceRequest> trace, Engine& engine, const JobProgress& progress)
      : trace_(trace), engine_(engine), progress_(progress) {
    for (const TraceRequest& request : trace)
      out_.requests.push_back({request.arrival_s, std::ssize(request.tokens), {}});
  }

  Status WarmUp() {
    Request request;
    request.tokens.assign(trace_[0].tokens.begin(), trace_[0].tokens.end());
    request.stop.max_tokens = std::min<int64_t>(trace_[0].output_tokens, 8);
    request.stop.ignore_eos = true;
    request.cache_salt = "warm-up";  // no other request shares its prefix
    LATTE_RETURN_IF_ERROR(engine_.Submit(std::move(request)));
    engine_.SetEventSink({});
    do {
      LATTE_RETURN_IF_ERROR(engine_.Step());
    } while (Busy());
    return {};
  }

  Result<TraceResult> Run() {
    const EngineStats before = engine_.Stats();
    start_ = Clock::now();
    Show();
    engine_.SetEventSink([this](std::span<const TokenEvent> events) { Take(events); });
    while (next_ < trace_.size() || Busy()) {
      LATTE_RETURN_IF_ERROR(SubmitDue());
      if (!Busy() && submitted_ == 0) {
        std::this_thread::sleep_until(TimeOf(trace_[next_].arrival_s));
        continue;
      }
      submitted_ = 0;
      LATTE_RETURN_IF_ERROR(Step());
      Show();
    }
    const EngineStats after = engine_.Stats();
    TraceCounts& counts = out_.counts;
    counts.steps = after.steps - before.steps;
    counts.preemptions = after.preemptions - before.preemptions;
    counts.prefix_hit_tokens = after.cached_tokens - before.cached_tokens;
    counts.pages_total = after.pages_total;
    counts.real_seconds = Now();
    return std::move(out_);
  }

 private:
  bool Busy() const {
    const EngineStats stats = engine_.Stats();
    return stats.waiting + stats.running > 0;
  }
  double Now() const { return SecondsSince(start_); }
  Clock::time_point TimeOf(double seconds) const {
    return start_ +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  Status SubmitDue() {
    for (; next_ < trace_.size() && trace_[next_].arrival_s <= Now(); ++next_) {
      Request request = RequestOf(trace_[next_], next_);
      request.user_data = next_;
      const Result<RequestId> id = engine_.Submit(std::move(request));
      if (!id && id.error().code == Code::kExhausted) {  // the queue is full
        ++ended_;
        continue;
      }
      if (!id) return tl::unexpected(id.error());
      ++submitted_;
    }
    return {};
  }

  Status Step() {
    const double begin = Now();
    LATTE_RETURN_IF_ERROR(engine_.Step());
    const double seconds = Now() - begin;
    const EngineStats stats = engine_.Stats();
    out_.counts.step_seconds += seconds;
    out_.counts.Note(stats.waiting, seconds, stats.pages_used);
    return {};
  }

  void Take(std::span<const TokenEvent> events) {
    const double now = Now();
    for (const TokenEvent& event : events) {
      if (event.token) out_.requests[event.user_data].token_s.push_back(now);
      if (event.finish) ++ended_;
    }
  }

  void Show() {
    if (!progress_) return;
    const Clock::time_point before = Clock::now();
    progress_(ended_, std::ssize(trace_), {});
    start_ += Clock::now() - before;
  }

  std::span<const TraceRequest> trace_;
  Engine& engine_;
  const JobProgress& progress_;
  Clock::time_point start_;
  size_t next_ = 0;        // next request to submit
  int64_t submitted_ = 0;  // since the last step
  int64_t ended_ = 0;
  TraceResult out_;
};

}  // namespace

Result<TraceResult> ReplayTrace(std::span<const TraceRequest> trace, const EngineParts& parts,
                                const Settings& settings, const JobProgress& progress) {
  LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<EngineCore> engine,
                         EngineCore::Create(parts, settings));
  Server server(trace, *engine, progress);
  LATTE_RETURN_IF_ERROR(server.WarmUp());
  return server.Run();
}

}  // namespace latte

#include "src/jobs/bench_serve/load.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <unordered_map>
#include <utility>

#include "src/base/timer.h"
#include "src/jobs/bench_serve/answer_reader.h"

namespace latte {
namespace {

constexpr auto kWatchEvery = std::chrono::milliseconds(200);

// Timers of the client may outlive the load: they share it, and do nothing then.
class Load : public std::enable_shared_from_this<Load> {
 public:
  using Watch = std::function<bool(const LoadProgress&)>;

  Load(const ApiServer& server, std::span<const TraceRequest> workload, const LoadOptions& options,
       const Watch& watch)
      : server_(server),
        client_(server.client()),
        workload_(workload),
        options_(options),
        watch_(watch),
        function_(options.form.chat ? "/v1/chat/completions" : "/v1/completions") {}

  LoadResult Run() {
    start_ = std::chrono::steady_clock::now();
    Admit();
    Tick();
    while (!over_) client_.Run();
    out_.unsent = std::ssize(workload_) - static_cast<int64_t>(sent_);
    return std::move(out_);
  }

 private:
  double Now() const { return SecondsSince(start_); }

  // Lets the requests that are due arrive, and comes again when the next one is.
  void Admit() {
    if (over_) return;
    while (due_ < workload_.size() && workload_[due_].arrival_s <= Now()) ++due_;
    SendDue();
    if (due_ == workload_.size()) return;
    const double wait = std::max(workload_[due_].arrival_s - Now(), 0.0);
    client_.After(std::chrono::nanoseconds(static_cast<int64_t>(wait * 1e9)),
                  [self = shared_from_this()] { self->Admit(); });
  }

  void SendDue() {
    const auto has_room = [&] {
      return options_.concurrency == 0 || std::ssize(in_flight_) < options_.concurrency;
    };
    while (!over_ && sent_ < due_ && has_room()) Send(workload_[sent_++]);
  }

  void Send(const TraceRequest& request) {
    const uint64_t number = sent_;
    auto reader = std::make_shared<AnswerReader>(std::ssize(request.tokens));
    HttpRequest post = server_.Post(function_, RequestBody(request, options_.form));
    reader->record().due_s = request.arrival_s;
    reader->record().start_s = Now();
    in_flight_[number] = client_.Start(
        std::move(post),
        {.on_head = [reader](const HttpResponse& head) { reader->OnHead(head); },
         .on_body = [this, reader](std::string_view piece) { OnBody(*reader, piece); },
         .on_end =
             [this, number, reader](const Status& status, HttpFailure failure) {
               reader->OnEnd(status, failure, Now());
               Finish(number, reader->record());
             }});
    out_.peak_in_flight = std::max(out_.peak_in_flight, std::ssize(in_flight_));
  }

  void OnBody(AnswerReader& reader, std::string_view piece) {
    const int64_t before = std::ssize(reader.record().event_s);
    reader.OnBody(piece, Now());
    tokens_ += std::ssize(reader.record().event_s) - before;
  }

  void Finish(uint64_t number, ServeRecord& record) {
    in_flight_.erase(number);
    out_.records.push_back(std::move(record));
    SendDue();
    if (out_.records.size() == workload_.size()) End();
  }

  void Tick() {
    if (over_) return;
    if (watch_ && !watch_({std::ssize(out_.records), std::ssize(workload_), tokens_})) {
      out_.cancelled = std::ssize(in_flight_);
      for (const auto& [number, call] : in_flight_) client_.Cancel(call);
      return End();
    }
    client_.After(kWatchEvery, [self = shared_from_this()] { self->Tick(); });
  }

  void End() {
    over_ = true;
    client_.Stop();
  }

  const ApiServer& server_;
  HttpClient& client_;
  std::span<const TraceRequest> workload_;
  const LoadOptions& options_;
  const Watch& watch_;
  std::string_view function_;
  std::chrono::steady_clock::time_point start_;
  size_t due_ = 0;   // requests that have arrived
  size_t sent_ = 0;  // of them
  std::unordered_map<uint64_t, HttpClient::CallId> in_flight_;
  int64_t tokens_ = 0;
  bool over_ = false;
  LoadResult out_;
};

}  // namespace

LoadResult RunLoad(const ApiServer& server, std::span<const TraceRequest> workload,
                   const LoadOptions& options,
                   const std::function<bool(const LoadProgress&)>& watch) {
  return std::make_shared<Load>(server, workload, options, watch)->Run();
}

}  // namespace latte

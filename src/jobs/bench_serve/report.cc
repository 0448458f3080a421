#include "src/jobs/bench_serve/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/base/timer.h"

namespace latte {
namespace {

using Values = std::vector<double>;

// Interpolated between the two nearest ranks. Requires: sorted, not empty.
double Percentile(const Values& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return sorted[below] + (sorted[above] - sorted[below]) * part;
}

double Mean(const Values& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Deviation(const Values& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

void AddTimes(JsonOut& out, const std::string& name, Values seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto add = [&](const std::string& what, auto figure) {
    out[what + "_" + name + "_ms"] = seconds.empty() ? JsonOut() : JsonOut(figure() * 1e3);
  };
  add("mean", [&] { return Mean(seconds); });
  add("median", [&] { return Percentile(seconds, 0.5); });
  add("std", [&] { return Deviation(seconds); });
  add("p90", [&] { return Percentile(seconds, 0.90); });
  add("p95", [&] { return Percentile(seconds, 0.95); });
  add("p99", [&] { return Percentile(seconds, 0.99); });
}

// The times of one answer; those that it does not have are not set.
struct AnswerTimes {
  std::optional<double> ttft;
  std::optional<double> tpot;
  double e2el = 0;
  std::optional<double> rate;  // tokens per second from the first token on
};

AnswerTimes TimesOf(const ServeRecord& record) {
  AnswerTimes out;
  out.e2el = record.end_s - record.start_s;
  if (record.event_s.empty()) return out;
  out.ttft = record.event_s.front() - record.start_s;
  if (record.output_tokens < 2) return out;
  const double decoding = out.e2el - *out.ttft;
  const auto rest = static_cast<double>(record.output_tokens - 1);
  out.tpot = decoding / rest;
  if (decoding > 0) out.rate = rest / decoding;
  return out;
}

bool IsGood(const AnswerTimes& times, const Goodput& goodput) {
  const auto within = [](std::optional<double> seconds, std::optional<double> limit_ms) {
    return !limit_ms || !seconds || *seconds * 1e3 <= *limit_ms;
  };
  return within(times.ttft, goodput.ttft_ms) && within(times.tpot, goodput.tpot_ms) &&
         within(times.e2el, goodput.e2el_ms);
}

class Report {
 public:
  explicit Report(const Goodput& goodput) : goodput_(goodput) {}

  void Add(const ServeRecord& record) {
    end_ = std::max(end_, record.end_s);
    begin_ = std::min(begin_, record.start_s);
    send_delay_.push_back(record.start_s - record.due_s);
    if (!record.ok()) return AddError(record);
    ++completed_;
    input_ += record.prompt_tokens;
    cached_ += record.cached_tokens;
    output_ += record.output_tokens;
    uncounted_ += record.counted ? 0 : 1;
    const AnswerTimes times = TimesOf(record);
    if (times.ttft) ttft_.push_back(*times.ttft);
    if (times.tpot) tpot_.push_back(*times.tpot);
    if (times.rate) rate_.push_back(*times.rate);
    e2el_.push_back(times.e2el);
    good_ += IsGood(times, goodput_) ? 1 : 0;
    AddGaps(record.event_s);
  }

  JsonOut ToJson(const LoadResult& load) const {
    const double duration = std::max(end_ - begin_, 0.0);
    JsonOut out = {
        {"completed", completed_},
        {"failed", failed_},
        {"cancelled", load.cancelled},
        {"unsent", load.unsent},
        {"duration", duration},
        {"total_input_tokens", input_},
        {"total_output_tokens", output_},
        {"cached_input_tokens", cached_},
        {"uncounted_answers", uncounted_},
        {"request_throughput", PerSecond(static_cast<double>(completed_), duration)},
        {"output_throughput", PerSecond(static_cast<double>(output_), duration)},
        {"total_token_throughput", PerSecond(static_cast<double>(input_ + output_), duration)},
        {"max_concurrent_requests", load.peak_in_flight}};
    out["request_goodput"] =
        goodput_.given() ? JsonOut(PerSecond(static_cast<double>(good_), duration)) : JsonOut();
    AddTimes(out, "ttft", ttft_);
    AddTimes(out, "tpot", tpot_);
    AddTimes(out, "itl", itl_);
    AddTimes(out, "e2el", e2el_);
    AddTimes(out, "event_delay", delay_);
    AddTimes(out, "send_delay", send_delay_);
    AddRates(out);
    AddErrors(out);
    return out;
  }

 private:
  struct Errors {
    int64_t count = 0;
    std::string first;
  };

  void AddError(const ServeRecord& record) {
    ++failed_;
    Errors& errors = errors_[record.error_kind];
    if (errors.count++ == 0) errors.first = record.error;
  }

  void AddGaps(const Values& events) {
    Values gaps;
    for (size_t i = 1; i < events.size(); ++i) gaps.push_back(events[i] - events[i - 1]);
    if (gaps.empty()) return;
    itl_.insert(itl_.end(), gaps.begin(), gaps.end());
    Values sorted = gaps;
    std::sort(sorted.begin(), sorted.end());
    const double usual = Percentile(sorted, 0.5);
    for (const double gap : gaps) delay_.push_back(std::max(gap - usual, 0.0));
  }

  void AddRates(JsonOut& out) const {
    const auto [least, most] = std::minmax_element(rate_.begin(), rate_.end());
    const bool any = !rate_.empty();
    out["min_stream_rate"] = any ? JsonOut(*least) : JsonOut();
    out["max_stream_rate"] = any ? JsonOut(*most) : JsonOut();
    out["ratio_stream_rate"] = any ? JsonOut(*most / *least) : JsonOut();
  }

  void AddErrors(JsonOut& out) const {
    out["errors"] = JsonOut::array();
    for (const auto& [kind, errors] : errors_)
      out["errors"].push_back({{"kind", kind}, {"count", errors.count}, {"message", errors.first}});
  }

  Goodput goodput_;
  double begin_ = std::numeric_limits<double>::infinity();
  double end_ = 0;
  int64_t completed_ = 0;
  int64_t failed_ = 0;
  int64_t good_ = 0;
  int64_t input_ = 0;
  int64_t output_ = 0;
  int64_t cached_ = 0;
  int64_t uncounted_ = 0;
  Values ttft_, tpot_, itl_, e2el_, delay_, send_delay_, rate_;
  std::map<std::string, Errors> errors_;
};

constexpr int kWidth = 58;

// The title in the middle of a line of `fill`.
std::string Title(std::string_view text, char fill) {
  const size_t left = (static_cast<size_t>(kWidth) - text.size() - 2) / 2;
  const size_t right = static_cast<size_t>(kWidth) - text.size() - 2 - left;
  return fmt::format("{} {} {}\n", std::string(left, fill), text, std::string(right, fill));
}

std::string ReportNumber(const JsonOut& value) {
  if (value.is_null()) return "-";
  if (value.is_number_integer()) return fmt::format("{}", value.get<int64_t>());
  return fmt::format("{:.2f}", value.get<double>());
}

std::string ReportLine(const std::string& name, const JsonOut& value) {
  return fmt::format("{:<42}{:>16}\n", name + ":", ReportNumber(value));
}

std::string TimeLines(const JsonOut& report, const std::string& title, const std::string& key,
                      const std::string& name) {
  if (report["mean_" + key + "_ms"].is_null()) return {};
  std::string out = Title(title, '-');
  for (const auto& [what, label] : {std::pair{"mean", "Mean"},
                                    {"median", "Median"},
                                    {"p90", "P90"},
                                    {"p95", "P95"},
                                    {"p99", "P99"}})
    out += ReportLine(fmt::format("{} {} (ms)", label, name),
                      report[fmt::format("{}_{}_ms", what, key)]);
  return out;
}

}  // namespace

JsonOut ServeReport(const LoadResult& load, const Goodput& goodput) {
  Report report(goodput);
  for (const ServeRecord& record : load.records) report.Add(record);
  return report.ToJson(load);
}

std::string ServeTable(const JsonOut& report) {
  std::string out = Title("Serving Benchmark Result", '=');
  const auto line = [&](const std::string& name, const std::string& key) {
    out += ReportLine(name, report[key]);
  };
  line("Successful requests", "completed");
  line("Failed requests", "failed");
  if (report["cancelled"] != 0 || report["unsent"] != 0) {
    line("Cancelled requests", "cancelled");
    line("Requests not sent", "unsent");
  }
  line("Benchmark duration (s)", "duration");
  line("Total input tokens", "total_input_tokens");
  line("Total generated tokens", "total_output_tokens");
  line("Request throughput (req/s)", "request_throughput");
  if (!report["request_goodput"].is_null()) line("Request goodput (req/s)", "request_goodput");
  line("Output token throughput (tok/s)", "output_throughput");
  line("Total token throughput (tok/s)", "total_token_throughput");
  line("Peak concurrent requests", "max_concurrent_requests");
  out += TimeLines(report, "Time to First Token", "ttft", "TTFT");
  out += TimeLines(report, "Time per Output Token (excl. 1st token)", "tpot", "TPOT");
  out += TimeLines(report, "Inter-token Latency", "itl", "ITL");
  out += TimeLines(report, "End-to-end Latency", "e2el", "E2EL");
  if (!report["mean_event_delay_ms"].is_null()) {
    out += Title("Evenness of Streams", '-');
    line("P99 event delay (ms)", "p99_event_delay_ms");
    line("Slowest stream (tok/s)", "min_stream_rate");
    line("Fastest stream (tok/s)", "max_stream_rate");
    line("Fastest / slowest", "ratio_stream_rate");
  }
  for (const JsonOut& error : report["errors"])
    out += fmt::format("{} x {}: {}\n", error["count"].get<int64_t>(),
                       error["kind"].get<std::string>(), error["message"].get<std::string>());
  return out + std::string(static_cast<size_t>(kWidth), '=') + "\n";
}

}  // namespace latte

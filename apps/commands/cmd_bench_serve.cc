// latte bench serve: load on a server with the OpenAI API, and how it answers.
#include <cmath>
#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/commands/bench_command.h"
#include "apps/flags/remote_flags.h"
#include "apps/terminal/interrupts.h"
#include "apps/terminal/progress.h"
#include "src/base/json_out.h"
#include "src/jobs/bench_serve/bench_serve.h"
#include "src/jobs/bench_serve/report.h"
#include "src/jobs/report/sweep.h"

namespace latte {
namespace {

struct ServeBenchFlags {
  RemoteFlags remote;
  BenchServeOptions options;
  std::string endpoint = "completions";
  std::vector<double> sweep;  // rates; empty: one load

  Result<BenchServeOptions> Options() const {
    BenchServeOptions out = options;
    out.address = remote.Address();
    out.ca_file = remote.ca_file;
    out.model = remote.model;
    out.chat = endpoint == "chat";
    if (!out.chat && endpoint != "completions")
      return InvalidArgument(
          fmt::format("--endpoint: expected chat or completions, found '{}'", endpoint));
    if (!sweep.empty() && !out.trace.empty())
      return InvalidArgument("--sweep: a trace has its own times; leave --sweep or --trace out");
    if (!sweep.empty() && std::isfinite(out.rate))
      return InvalidArgument("--sweep: expected no --rate with it, found both");
    return out;
  }

  Status Run(bool json) const {
    LATTE_ASSIGN_OR_RETURN(const BenchServeOptions checked, Options());
    LATTE_ASSIGN_OR_RETURN(const Interrupts interrupts, Interrupts::Catch({SIGINT, SIGTERM}));
    return sweep.empty() ? RunOne(checked, interrupts, json) : RunSweep(checked, interrupts, json);
  }

  static Status RunOne(const BenchServeOptions& checked, const Interrupts& interrupts, bool json) {
    LATTE_ASSIGN_OR_RETURN(const Measured measured, Measure(checked, "bench serve", interrupts));
    LATTE_RETURN_IF_ERROR(Print(json ? Dump(measured.report) + "\n" : ServeTable(measured.report)));
    return ProblemOf(measured);
  }

  // A load that fails does not hide the ones before it.
  Status RunSweep(BenchServeOptions load, const Interrupts& interrupts, bool json) const {
    constexpr SweepKeys kKeys = {"output_throughput", "median_ttft_ms", "p99_ttft_ms",
                                 "median_tpot_ms", "p99_tpot_ms"};
    JsonOut reports = JsonOut::array();
    Status problem;
    for (const double rate : sweep) {
      load.rate = rate;
      Result<Measured> measured = Measure(load, fmt::format("{:g} requests/s", rate), interrupts);
      problem = measured ? ProblemOf(*measured) : tl::unexpected(measured.error());
      if (measured) reports.push_back(std::move(measured->report));
      if (!problem) break;
    }
    LATTE_RETURN_IF_ERROR(Print(json ? Dump(reports) + "\n" : SweepTable(sweep, reports, kKeys)));
    return problem;
  }

  struct Measured {
    JsonOut report;
    bool stopped = false;
  };
  static Result<Measured> Measure(const BenchServeOptions& load, const std::string& title,
                                  const Interrupts& interrupts) {
    Measured out;
    Progress progress(title, "requests");
    const auto watch = [&](const LoadProgress& now) {
      progress.Show(now.done, now.total, fmt::format("{} tokens", now.tokens));
      out.stopped = interrupts.TakeFirst();
      return !out.stopped;
    };
    LATTE_ASSIGN_OR_RETURN(out.report, BenchServe(load, watch));
    progress.End();
    return out;
  }

  static Status ProblemOf(const Measured& measured) {
    if (measured.stopped)
      return Fail(Code::kCancelled, "bench serve: stopped before all requests ended");
    if (measured.report["completed"] != 0) return {};
    return Fail(Code::kUnavailable, "bench serve: no request succeeded; the first error is " +
                                        measured.report["errors"][0]["message"].get<std::string>());
  }
};

template <class T>
auto Into(T* value, Result<T> (*parse)(std::string_view)) {
  return [value, parse](const std::string& text) -> Status {
    LATTE_ASSIGN_OR_RETURN(*value, parse(text));
    return {};
  };
}

auto IntoRange(TokenRange* value, const char* flag) {
  return [value, flag](const std::string& text) -> Status {
    LATTE_ASSIGN_OR_RETURN(*value, ParseTokenRange(flag, text));
    return {};
  };
}

void AddLoadFlags(const FlagSet& sub, BenchServeOptions& o) {
  sub.AddParsed("--rate", Into(&o.rate, ParseRate),
                "requests per second, at random times; inf: all at once (default: inf)");
  sub.Add("--burstiness", o.burstiness,
          "shape of the gamma distribution of gaps; less than 1: bursts (default: 1, Poisson)");
  sub.Add("--concurrency", o.concurrency, "most requests in flight; 0: no limit (default: 0)");
  sub.Add("--requests", o.requests, "requests (default: 100)");
  sub.AddParsed("--input-tokens", IntoRange(&o.input, "--input-tokens"),
                "tokens of prompts, N or MIN:MAX (default: 64)");
  sub.AddParsed("--output-tokens", IntoRange(&o.output, "--output-tokens"),
                "most tokens of answers, N or MIN:MAX (default: 64)");
  sub.Add("--shared-prefix-tokens", o.shared_prefix,
          "tokens before each prompt that its group shares (default: 0)");
  sub.Add("--prefixes", o.prefixes, "groups of prompts (default: 1)");
  sub.Add("--trace", o.trace, "a file of requests instead (docs/simulation.md)").Value("FILE");
  sub.Add("-s,--seed", o.seed,
          "same seed, same requests; fixed, so that runs compare (default: 0)");
}

void AddRequestFlags(const FlagSet& sub, ServeBenchFlags& flags) {
  BenchServeOptions& o = flags.options;
  sub.Add("--endpoint", flags.endpoint, "path of the API (default: completions)")
      .Value("completions|chat");
  sub.AddSwitch("--token-ids", o.token_ids,
                "prompts as token ids, which Latte gets anyway; others get words");
  sub.Add("--vocab", o.vocab, "ids are below it (default: what the server says, else 32000)");
  sub.AddSwitch("--ignore-eos", o.ignore_eos, "answers have all of their output tokens");
  sub.AddSwitch(
      "--stream", [&o] { o.stream = true; }, "answers come as streams (default)");
  sub.AddSwitch(
      "--no-stream", [&o] { o.stream = false; }, "answers come whole");
  sub.Add("--timeout", o.timeout_s, "seconds for one request; 0: no limit (default: 0)");
  sub.AddParsed("--goodput", Into(&o.goodput, ParseGoodput),
                "count good answers: ttft:MS,tpot:MS,e2el:MS, the largest times of each");
}

}  // namespace

void AddServeBench(const FlagSet& bench, BenchFlags& flags) {
  auto own = std::make_shared<ServeBenchFlags>();
  const FlagSet sub = bench.AddCommand("serve", "Load on a server with the OpenAI API");
  sub.Footer("docs/benchmarking_servers.md explains the figures.");
  own->remote.AddUrl(sub, /*required=*/true);
  own->remote.AddOthers(sub);
  AddLoadFlags(sub, own->options);
  sub.AddParsed("--sweep", Into(&own->sweep, ParseSweep),
                "one load for each of these rates instead, with commas between them: a row "
                "each, and charts of latency against throughput")
      .Value("RATES");
  AddRequestFlags(sub, *own);
  sub.Group("Output").AddSwitch("--json", flags.json, "one JSON object instead of a table");
  sub.OnChosen([&flags, own] { flags.own = [own](bool json) { return own->Run(json); }; });
}

}  // namespace latte

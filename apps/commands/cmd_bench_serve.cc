// latte bench serve: load on a server with the OpenAI API, and how it answers.
#include <csignal>
#include <memory>

#include <fmt/format.h>

#include "apps/commands/bench_command.h"
#include "apps/flags/remote_flags.h"
#include "apps/terminal/interrupts.h"
#include "apps/terminal/progress.h"
#include "src/base/json_out.h"
#include "src/jobs/bench_serve/bench_serve.h"
#include "src/jobs/bench_serve/report.h"

namespace latte {
namespace {

struct ServeBenchFlags {
  RemoteFlags remote;
  BenchServeOptions options;
  std::string endpoint = "completions";

  Result<BenchServeOptions> Options() const {
    BenchServeOptions out = options;
    out.address = remote.Address();
    out.ca_file = remote.ca_file;
    out.model = remote.model;
    out.chat = endpoint == "chat";
    if (!out.chat && endpoint != "completions")
      return InvalidArgument(
          fmt::format("--endpoint: expected chat or completions, found '{}'", endpoint));
    return out;
  }

  Status Run(bool json) const {
    LATTE_ASSIGN_OR_RETURN(const BenchServeOptions checked, Options());
    LATTE_ASSIGN_OR_RETURN(const Interrupts interrupts, Interrupts::Catch({SIGINT, SIGTERM}));
    bool stopped = false;
    Progress progress("bench serve", "requests");
    const auto watch = [&](const LoadProgress& now) {
      progress.Show(now.done, now.total, fmt::format("{} tokens", now.tokens));
      stopped = interrupts.TakeFirst();
      return !stopped;
    };
    LATTE_ASSIGN_OR_RETURN(const JsonOut report, BenchServe(checked, watch));
    progress.End();
    LATTE_RETURN_IF_ERROR(Print(json ? Dump(report) + "\n" : ServeTable(report)));
    if (stopped) return Fail(Code::kCancelled, "bench serve: stopped before all requests ended");
    if (report["completed"] == 0)
      return Fail(Code::kUnavailable, "bench serve: no request succeeded; the first error is " +
                                          report["errors"][0]["message"].get<std::string>());
    return {};
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
  AddRequestFlags(sub, *own);
  sub.Group("Output").AddSwitch("--json", flags.json, "one JSON object instead of a table");
  sub.OnChosen([&flags, own] { flags.own = [own](bool json) { return own->Run(json); }; });
}

}  // namespace latte

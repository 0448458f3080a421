#include "src/jobs/bench_serve/bench_serve.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/base/limits/open_files.h"
#include "src/jobs/bench_serve/report.h"

namespace latte {
namespace {

constexpr int64_t kUsualVocab = 32'000;

struct ServerKind {
  bool is_latte = false;
  int64_t vocab = 0;  // 0: not known
};

// Servers without these functions, or with other answers, are not Latte.
ServerKind FindKind(const ApiServer& server) {
  ServerKind out;
  const Result<Json> version = server.GetJson("/version");
  out.is_latte = version && version->GetStringOr("name", "").value_or("") == "latte";
  if (!out.is_latte) return out;
  if (const Result<Json> props = server.GetJson("/props"))
    out.vocab = props->GetIntOr("vocab_size", 0).value_or(0);
  return out;
}

HttpClientOptions ClientOptions(const BenchServeOptions& options) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;  // of one answer
  HttpClientOptions out;
  out.ca_file = options.ca_file;
  out.connect_timeout = std::chrono::seconds(60);  // many connections at once take their time
  out.total_timeout = std::chrono::milliseconds(std::llround(options.timeout_s * 1e3));
  out.max_body_bytes = kMostBytes;
  return out;
}

// Connections of the load, with the files of everything else.
Status CheckOpenFiles(const BenchServeOptions& options, int64_t requests) {
  constexpr int64_t kOthers = 32;
  const int64_t most =
      options.concurrency == 0 ? requests : std::min(options.concurrency, requests);
  const int64_t limit = RaiseOpenFiles();
  if (most + kOthers <= limit) return {};
  return InvalidArgument(
      fmt::format("--concurrency: expected at most {}, because this process may have {} open files "
                  "(ulimit -Hn), found {}",
                  limit - kOthers, limit, options.concurrency));
}

void AddSettings(JsonOut& out, const BenchServeOptions& options, const LoadOptions& load) {
  out["url"] = options.address.url;
  out["model"] = load.form.model;
  out["endpoint"] = load.form.chat ? "chat" : "completions";
  out["stream"] = load.form.stream;
  out["token_ids"] = load.form.token_ids;
  out["request_rate"] = std::isfinite(options.rate) ? JsonOut(options.rate) : JsonOut("inf");
  out["burstiness"] = options.burstiness;
  out["max_concurrency"] =
      options.concurrency > 0 ? JsonOut(options.concurrency) : JsonOut(nullptr);
  out["seed"] = options.seed;
}

}  // namespace

Result<JsonOut> BenchServe(const BenchServeOptions& options,
                           const std::function<bool(const LoadProgress&)>& watch) {
  LATTE_RETURN_IF_ERROR(options.Validate());
  LATTE_ASSIGN_OR_RETURN(const ApiServer server,
                         ApiServer::Open(options.address, ClientOptions(options)));
  LoadOptions load{.form = {.model = options.model,
                            .chat = options.chat,
                            .stream = options.stream,
                            .ignore_eos = options.ignore_eos},
                   .concurrency = options.concurrency};
  if (load.form.model.empty()) {
    LATTE_ASSIGN_OR_RETURN(load.form.model, server.FirstModel());
  }
  const ServerKind kind = FindKind(server);
  load.form.token_ids = !options.chat && (options.token_ids || kind.is_latte);
  const int64_t known = kind.vocab > 0 ? kind.vocab : kUsualVocab;
  LATTE_ASSIGN_OR_RETURN(const std::vector<TraceRequest> workload,
                         MakeWorkload(options, options.vocab > 0 ? options.vocab : known));
  LATTE_RETURN_IF_ERROR(CheckOpenFiles(options, std::ssize(workload)));
  const LoadResult result = RunLoad(server, workload, load, watch);
  JsonOut report = ServeReport(result, options.goodput);
  AddSettings(report, options, load);
  return report;
}

}  // namespace latte

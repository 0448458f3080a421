#include "src/jobs/bench_serve/workload.h"

#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "src/base/json_out.h"
#include "src/base/random.h"
#include "src/jobs/random_draws.h"

namespace latte {
namespace {

// Streams of random numbers, one for each purpose: a flag for one does not change another.
enum WorkloadStream : uint64_t {
  kArrivalDraws,
  kInputDraws,
  kOutputDraws,
  kGroupDraws,
  kPrefixDraws,
  kOwnDraws
};

constexpr std::array<std::string_view, 64> kWords = {
    "the",    "of",    "and",   "to",    "in",    "a",     "is",   "that", "for",   "it",
    "as",     "was",   "with",  "be",    "by",    "on",    "not",  "he",   "this",  "are",
    "or",     "his",   "from",  "at",    "which", "but",   "have", "an",   "had",   "they",
    "you",    "were",  "their", "one",   "all",   "we",    "can",  "her",  "has",   "there",
    "been",   "if",    "more",  "when",  "will",  "would", "who",  "so",   "no",    "time",
    "people", "water", "day",   "house", "work",  "world", "hand", "year", "small", "large",
    "river",  "tree",  "road",  "bird"};

// Gamma distribution with scale 1 (Marsaglia and Tsang 2000).
double Gamma(Random& random, double shape) {
  if (shape == 1) return -std::log(DrawUniform(random));
  if (shape < 1) return Gamma(random, shape + 1) * std::pow(DrawUniform(random), 1 / shape);
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = DrawNormal(random);
    const double v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(DrawUniform(random)) < x * x / 2 + d - d * v + d * std::log(v))
      return d * v;
  }
}

int64_t DrawTokens(Random& random, const TokenRange& range) {
  return range.low +
         static_cast<int64_t>(random.Below(static_cast<uint64_t>(range.high - range.low + 1)));
}

void AddTokens(Random random, int64_t count, int64_t vocab, std::vector<int32_t>* out) {
  for (int64_t i = 0; i < count; ++i)
    out->push_back(static_cast<int32_t>(random.Below(static_cast<uint64_t>(vocab))));
}

std::vector<TraceRequest> RandomRequests(const BenchServeOptions& options, int64_t vocab) {
  Random arrivals(options.seed, kArrivalDraws);
  Random inputs(options.seed, kInputDraws);
  Random outputs(options.seed, kOutputDraws);
  Random groups(options.seed, kGroupDraws);
  std::vector<TraceRequest> out;
  double now = 0;
  for (int64_t i = 0; i < options.requests; ++i) {
    TraceRequest request;
    request.arrival_s = now;
    if (std::isfinite(options.rate))
      now += Gamma(arrivals, options.burstiness) / (options.burstiness * options.rate);
    request.output_tokens = DrawTokens(outputs, options.output);
    const uint64_t group = groups.Below(static_cast<uint64_t>(options.prefixes));
    AddTokens(Random(options.seed ^ Mix64(kPrefixDraws), group), options.shared_prefix, vocab,
              &request.tokens);
    AddTokens(Random(options.seed ^ Mix64(kOwnDraws), static_cast<uint64_t>(i)),
              DrawTokens(inputs, options.input), vocab, &request.tokens);
    out.push_back(std::move(request));
  }
  return out;
}

}  // namespace

Result<std::vector<TraceRequest>> MakeWorkload(const BenchServeOptions& options, int64_t vocab) {
  if (options.trace.empty()) return RandomRequests(options, vocab);
  constexpr int64_t kMostTokens = 10'000'000;  // the server refuses what is too long for it
  const TraceShape shape{.shared_prefix = options.shared_prefix,
                         .prefix_groups = options.prefixes,
                         .seed = options.seed};
  return LoadTrace(options.trace, shape, {.vocab = vocab, .max_tokens = kMostTokens});
}

std::string WordsFor(std::span<const int32_t> ids) {
  std::string out;
  for (const int32_t id : ids) {
    if (!out.empty()) out += ' ';
    out += kWords[Mix64(static_cast<uint64_t>(id)) % kWords.size()];
  }
  return out;
}

std::string RequestBody(const TraceRequest& request, const RequestForm& form) {
  JsonOut body = {{"model", form.model}};
  if (form.chat) {
    body["messages"] = JsonOut::array({{{"role", "user"}, {"content", WordsFor(request.tokens)}}});
  } else if (form.token_ids) {
    body["prompt"] = request.tokens;
  } else {
    body["prompt"] = WordsFor(request.tokens);
  }
  body["max_tokens"] = request.output_tokens;
  body["temperature"] = 0;
  if (form.ignore_eos) body["ignore_eos"] = true;
  if (request.priority != 0) body["priority"] = request.priority;
  body["stream"] = form.stream;
  if (form.stream) body["stream_options"] = {{"include_usage", true}};
  return Dump(body);
}

}  // namespace latte

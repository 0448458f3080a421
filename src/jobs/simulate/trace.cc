#include "src/jobs/simulate/trace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include <fmt/format.h>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/random.h"
#include "src/base/range.h"
#include "src/base/strings.h"
#include "src/jobs/random_draws.h"

namespace latte {
namespace {

constexpr int64_t kMostTraceRequests = 1'000'000;
constexpr int64_t kMostBytes = int64_t{1} << 30;

// Streams of random numbers, one per purpose: a flag for one does not change another.
enum TraceStream : uint64_t {
  kArrivalTimes,
  kLengthDraws,
  kAnswerLengths,
  kGroupChoices,
  kPrefixText,
  kOwnText
};

// A random length of the given mean, limited to 1 … most.
int64_t DrawLength(Random& random, double mean, double sigma, int64_t most) {
  const double drawn = mean * std::exp(sigma * DrawNormal(random) - sigma * sigma / 2);
  return std::clamp<int64_t>(std::llround(std::min(drawn, 1e9)), 1, std::max<int64_t>(most, 1));
}

class Prompts {
 public:
  Prompts(const TraceShape& shape, int64_t vocab) : shape_(shape), vocab_(vocab) {}

  // `group` < 0: no shared prefix.
  std::vector<int32_t> Make(int64_t length, int64_t group) {
    std::vector<int32_t> out;
    const int64_t shared = group < 0 ? 0 : std::min(shape_.shared_prefix, length);
    Random prefix(shape_.seed ^ Mix64(kPrefixText), static_cast<uint64_t>(group));
    Random own(shape_.seed ^ Mix64(kOwnText), made_++);
    for (int64_t i = 0; i < length; ++i) out.push_back(Token(i < shared ? prefix : own));
    return out;
  }

 private:
  int32_t Token(Random& random) const {
    return static_cast<int32_t>(random.Below(static_cast<uint64_t>(vocab_)));
  }

  const TraceShape& shape_;
  int64_t vocab_;
  uint64_t made_ = 0;
};

class TraceReader {
 public:
  TraceReader(const TraceShape& shape, const TraceLimits& limits)
      : limits_(limits), prompts_(shape, limits.vocab) {}

  Result<TraceRequest> Read(const Json& line) {
    LATTE_RETURN_IF_ERROR(CheckKeys(line));
    TraceRequest out;
    LATTE_ASSIGN_OR_RETURN(out.arrival_s, line.GetDouble("arrival_s"));
    if (out.arrival_s < 0) return Wrong(line, "arrival_s", "0 or more seconds", out.arrival_s);
    LATTE_ASSIGN_OR_RETURN(out.tokens, ReadPrompt(line));
    LATTE_ASSIGN_OR_RETURN(out.output_tokens, Int(line, "output_tokens", 1));
    LATTE_ASSIGN_OR_RETURN(const int64_t priority, line.GetIntOr("priority", 0));
    if (priority < -1000 || priority > 1000)
      return Wrong(line, "priority", "-1000 to 1000", priority);
    out.priority = static_cast<int>(priority);
    const int64_t both = std::ssize(out.tokens) + out.output_tokens;
    if (both > limits_.max_tokens)
      return Corrupt(fmt::format(
          "{}: 'output_tokens': expected at most {} tokens together with the prompt, found {}; "
          "shorten it or raise --context",
          line.path(), limits_.max_tokens, both));
    return out;
  }

 private:
  template <class T>
  static tl::unexpected<Error> Wrong(const Json& line, std::string_view key,
                                     std::string_view expected, T found) {
    return Corrupt(
        fmt::format("{}: '{}': expected {}, found {}", line.path(), key, expected, found));
  }

  Status CheckKeys(const Json& line) const {
    if (!line.is_object()) return Corrupt(fmt::format("{}: expected an object", line.path()));
    static constexpr std::array<std::string_view, 6> kKeys = {
        "arrival_s", "prompt_tokens", "tokens", "output_tokens", "prefix_group", "priority"};
    return line.ForEachMember([&](const std::string& key, const Json&) -> Status {
      if (std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end()) return {};
      return Corrupt(fmt::format(
          "{}: '{}': expected arrival_s, prompt_tokens or tokens, output_tokens, prefix_group or "
          "priority",
          line.path(), key));
    });
  }

  Result<int64_t> Int(const Json& line, std::string_view key, int64_t least) const {
    LATTE_ASSIGN_OR_RETURN(const int64_t value, line.GetInt(key));
    if (value < least || value > limits_.max_tokens)
      return Wrong(line, key, fmt::format("{} to {}", least, limits_.max_tokens), value);
    return value;
  }

  Result<std::vector<int32_t>> ReadPrompt(const Json& line) {
    if (line.Find("tokens")) return ReadTokens(line);
    LATTE_ASSIGN_OR_RETURN(const int64_t length, Int(line, "prompt_tokens", 1));
    LATTE_ASSIGN_OR_RETURN(const int64_t group, line.GetIntOr("prefix_group", -1));
    return prompts_.Make(length, group);
  }

  Result<std::vector<int32_t>> ReadTokens(const Json& line) const {
    LATTE_ASSIGN_OR_RETURN(const Json list, line.Get("tokens"));
    if (!list.is_array() || list.size() == 0)
      return Corrupt(fmt::format("{}: expected an array of at least one id", list.path()));
    std::vector<int32_t> out;
    for (size_t i = 0; i < list.size(); ++i) {
      LATTE_ASSIGN_OR_RETURN(const int64_t id, list.At(i).AsInt());
      if (id < 0 || id >= limits_.vocab)
        return Wrong(line, "tokens", fmt::format("ids 0 to {}", limits_.vocab - 1), id);
      out.push_back(static_cast<int32_t>(id));
    }
    return out;
  }

  const TraceLimits& limits_;
  Prompts prompts_;
};

}  // namespace

Status TraceShape::Validate() const {
  LATTE_RETURN_IF_ERROR(
      FlagInRange("--requests", static_cast<double>(requests), 1, kMostTraceRequests));
  LATTE_RETURN_IF_ERROR(FlagInRange("--rate", rate, 0, 1e6));
  LATTE_RETURN_IF_ERROR(FlagInRange("--prompt-mean", prompt_mean, 1, 1e7));
  LATTE_RETURN_IF_ERROR(FlagInRange("--prompt-sigma", prompt_sigma, 0, 4));
  LATTE_RETURN_IF_ERROR(FlagInRange("--output-mean", output_mean, 1, 1e7));
  LATTE_RETURN_IF_ERROR(FlagInRange("--output-sigma", output_sigma, 0, 4));
  LATTE_RETURN_IF_ERROR(FlagInRange("--shared-prefix", static_cast<double>(shared_prefix), 0, 1e7));
  return FlagInRange("--prefix-groups", static_cast<double>(prefix_groups), 1, kMostTraceRequests);
}

Result<std::vector<TraceRequest>> MakeTrace(const TraceShape& shape, const TraceLimits& limits) {
  LATTE_RETURN_IF_ERROR(shape.Validate());
  const int64_t room = limits.max_tokens - shape.shared_prefix;
  if (room < 2)
    return InvalidArgument(
        fmt::format("--shared-prefix: expected fewer than {} tokens, as --context is {}, found {}",
                    limits.max_tokens - 1, limits.max_tokens, shape.shared_prefix));
  Random arrivals(shape.seed, kArrivalTimes);
  Random lengths(shape.seed, kLengthDraws);
  Random outputs(shape.seed, kAnswerLengths);
  Random groups(shape.seed, kGroupChoices);
  Prompts prompts(shape, limits.vocab);
  std::vector<TraceRequest> out;
  double now = 0;
  for (int64_t i = 0; i < shape.requests; ++i) {
    if (shape.rate > 0) now -= std::log(DrawUniform(arrivals)) / shape.rate;
    const int64_t own = DrawLength(lengths, shape.prompt_mean, shape.prompt_sigma, room - 1);
    TraceRequest request;
    request.arrival_s = now;
    request.output_tokens = DrawLength(outputs, shape.output_mean, shape.output_sigma, room - own);
    const auto group =
        static_cast<int64_t>(groups.Below(static_cast<uint64_t>(shape.prefix_groups)));
    request.tokens = prompts.Make(shape.shared_prefix + own, group);
    out.push_back(std::move(request));
  }
  return out;
}

Result<std::vector<TraceRequest>> LoadTrace(const std::string& path, const TraceShape& shape,
                                            const TraceLimits& limits) {
  LATTE_RETURN_IF_ERROR(shape.Validate());
  LATTE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostBytes));
  TraceReader reader(shape, limits);
  std::vector<TraceRequest> out;
  std::string_view rest = text;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = TakePiece(&rest, '\n');
    if (IsBlank(line)) continue;
    LATTE_ASSIGN_OR_RETURN(const Json json,
                           Json::Parse(line, fmt::format("{}: line {}", path, number)));
    LATTE_ASSIGN_OR_RETURN(TraceRequest request, reader.Read(json));
    out.push_back(std::move(request));
    if (std::ssize(out) > kMostTraceRequests)
      return Corrupt(fmt::format("{}: expected at most {} requests", path, kMostTraceRequests));
  }
  if (out.empty())
    return Corrupt(fmt::format("{}: expected at least one request, found none", path));
  std::stable_sort(out.begin(), out.end(), [](const TraceRequest& a, const TraceRequest& b) {
    return a.arrival_s < b.arrival_s;
  });
  return out;
}

}  // namespace latte

#include "src/jobs/bench_serve/options.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "src/base/range.h"
#include "src/base/strings.h"

namespace latte {
namespace {

constexpr int64_t kMostBenchRequests = 1'000'000;
constexpr int64_t kMostTokens = 10'000'000;

template <class T>
std::optional<T> ReadNumber(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

Result<TokenRange> ParseTokenRange(std::string_view flag, std::string_view text) {
  const size_t colon = text.find(':');
  const auto low = ReadNumber<int64_t>(text.substr(0, colon));
  const auto high =
      colon == std::string_view::npos ? low : ReadNumber<int64_t>(text.substr(colon + 1));
  if (low && high && *low >= 1 && *low <= *high && *high <= kMostTokens)
    return TokenRange{*low, *high};
  return InvalidArgument(
      fmt::format("{}: expected a number of tokens from 1 to {}, or MIN:MAX, found '{}'", flag,
                  kMostTokens, text));
}

Result<double> ParseRate(std::string_view text) {
  const std::optional<double> rate = ReadNumber<double>(text);
  if (rate && *rate > 0) return *rate;
  return InvalidArgument(
      fmt::format("--rate: expected requests per second above 0, or inf, found '{}'", text));
}

Result<Goodput> ParseGoodput(std::string_view text) {
  Goodput out;
  while (!text.empty()) {
    const std::string_view item = TakePiece(&text, ',');
    const size_t colon = item.find(':');
    const std::string_view name = item.substr(0, colon);
    std::optional<double> limit;
    if (colon != std::string_view::npos) limit = ReadNumber<double>(item.substr(colon + 1));
    std::optional<double>* const place = name == "ttft"   ? &out.ttft_ms
                                         : name == "tpot" ? &out.tpot_ms
                                         : name == "e2el" ? &out.e2el_ms
                                                          : nullptr;
    if (place == nullptr || !limit || !(*limit > 0) || !std::isfinite(*limit))
      return InvalidArgument(fmt::format(
          "--goodput: expected ttft:MS, tpot:MS or e2el:MS, separated by commas, found '{}'",
          item));
    *place = limit;
  }
  return out;
}

Status BenchServeOptions::Validate() const {
  LATTE_RETURN_IF_ERROR(FlagInRange("--requests", requests, 1, kMostBenchRequests));
  LATTE_RETURN_IF_ERROR(FlagInRange("--concurrency", concurrency, 0, kMostBenchRequests));
  LATTE_RETURN_IF_ERROR(FlagInRange("--burstiness", burstiness, 0.01, 1000.0));
  LATTE_RETURN_IF_ERROR(FlagInRange("--shared-prefix-tokens", shared_prefix, 0, kMostTokens));
  LATTE_RETURN_IF_ERROR(FlagInRange("--prefixes", prefixes, 1, kMostBenchRequests));
  LATTE_RETURN_IF_ERROR(FlagInRange("--vocab", vocab, 0, 100'000'000));
  LATTE_RETURN_IF_ERROR(FlagInRange("--timeout", timeout_s, 0, 1e6));
  if (chat && token_ids)
    return InvalidArgument("--token-ids: chat takes text; use --endpoint completions");
  return {};
}

}  // namespace latte

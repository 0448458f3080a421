#include "src/hub/fault.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "src/text/unicode/printable.h"

namespace latte {
namespace {

using Kind = Fault::Kind;

Fault Fatal(Code code, std::string message) {
  return {Kind::kFatal, Error{code, std::move(message)}, std::nullopt};
}

Fault Retry(std::string message, std::optional<double> wait = std::nullopt) {
  return {Kind::kRetry, Error{Code::kUnavailable, std::move(message)}, wait};
}

std::string What(const Asked& asked) {
  return asked.file.empty() ? asked.repo : asked.repo + ": " + asked.file;
}

// A proxy that reads the requests may have answered itself.
std::string StatusText(const HttpHead& head) {
  const std::string status = fmt::to_string(head.status);
  return head.proxy.empty() ? status : fmt::format("{} (through the {})", status, head.proxy);
}

// 401 and 403 of the Hub. It answers 401 also for repositories that do not exist.
Fault Refused(const HttpHead& head, const Asked& asked, const HubEnvironment& hub) {
  const std::string page = hub.endpoint + "/" + asked.repo;
  const std::string& code = head.Get("x-error-code");
  if (code == "GatedRepo" || (head.status == 403 && code != "RepoNotFound"))
    return Fatal(Code::kInvalidArgument,
                 fmt::format("{}: access is restricted ({}): accept the licence at {}, then {}",
                             What(asked), StatusText(head), page,
                             hub.token.empty()
                                 ? "set HF_TOKEN to a token of that account"
                                 : fmt::format("use a token of that account; the one sent is from "
                                               "{}",
                                               hub.token_from)));
  if (!hub.token.empty() && code != "RepoNotFound")
    return Fatal(
        Code::kInvalidArgument,
        fmt::format("{}: {} does not accept the token from {} ({}); make a new one at "
                    "{}/settings/tokens",
                    What(asked), asked.host, hub.token_from, StatusText(head), hub.endpoint));
  return Fatal(Code::kNotFound,
               fmt::format("{}: no such public model at {} ({}); check the spelling, or, if it is "
                           "private or gated, {}",
                           What(asked), hub.endpoint, StatusText(head),
                           hub.token.empty()
                               ? "set HF_TOKEN"
                               : fmt::format("use a token with access to it; the one sent is from "
                                             "{}",
                                             hub.token_from)));
}

Fault Missing(const HttpHead& head, const Asked& asked, const HubEnvironment& hub) {
  if (!asked.file.empty())
    return Fatal(Code::kNotFound,
                 fmt::format("{}: the listing names this file, and {} does not have it (404); try "
                             "again, or leave it out with --exclude",
                             What(asked), asked.host));
  if (head.Get("x-error-code") == "RevisionNotFound")
    return Fatal(Code::kNotFound,
                 fmt::format("{}: no branch, tag or commit '{}'; see {}/{}/tree/main", asked.repo,
                             asked.revision, hub.endpoint, asked.repo));
  return Fatal(Code::kNotFound, fmt::format("{}: no such model at {} (404); check the spelling",
                                            asked.repo, hub.endpoint));
}

// The seconds until a limit of requests ends: of Retry-After, or t of the Hub's "RateLimit:
// "resolvers";r=0;t=55".
std::optional<double> WaitOf(const HttpHead& head) {
  if (head.retry_after) return head.retry_after;
  const std::string& limit = head.Get("ratelimit");
  const size_t at = limit.find(";t=");
  if (at == std::string::npos) return std::nullopt;
  int seconds = 0;
  const char* begin = limit.data() + at + 3;
  const auto [end, error] = std::from_chars(begin, limit.data() + limit.size(), seconds);
  if (error != std::errc() || seconds < 0) return std::nullopt;
  return seconds;
}

}  // namespace

Fault FaultOfNet(const NetError& error, bool first) {
  using Net = NetError::Kind;
  if (error.kind == Net::kStopped) return {Kind::kStopped, {Code::kCancelled, "stopped"}, {}};
  const bool unreachable = error.kind == Net::kName || error.kind == Net::kConnect;
  if (error.kind == Net::kTls || error.kind == Net::kProxy || error.kind == Net::kRejected ||
      (first && unreachable))
    return Fatal(Code::kUnavailable, error.message);
  return Retry(error.message);
}

Fault FaultOfStatus(const HttpHead& head, const Asked& asked, const HubEnvironment& hub) {
  const std::string answer =
      fmt::format("{}: {} answers {}", What(asked), asked.host, StatusText(head));
  // A signed address expires; the Hub gives a new one.
  if (asked.redirected && head.status >= 400 && head.status < 500 && head.status != 429)
    return Retry(answer + " for the address that the Hub gave");
  switch (head.status) {
    case 401:
    case 403:
      return Refused(head, asked, hub);
    case 404:
      return Missing(head, asked, hub);
    case 408:
      return Retry(answer);
    case 429:
      return Retry(
          fmt::format("{} (too many requests); try again later{}", answer,
                      hub.token.empty() ? ", or set HF_TOKEN, which raises the limit" : ""),
          WaitOf(head));
    default:
      break;
  }
  if (head.status >= 500) return Retry(answer + "; try again later", WaitOf(head));
  const std::string& said = head.Get("x-error-message");
  return Fatal(Code::kUnavailable,
               said.empty() ? answer : fmt::format("{}: {}", answer, Printable(said, 200)));
}

double Backoff(const RetryPolicy& policy, int failures) {
  double seconds = policy.base;
  for (int i = 1; i < failures && seconds < 30; ++i) seconds *= 2;
  return std::min(seconds, 30.0);
}

Result<double> NextTry(const Fault& fault, const RetryPolicy& policy, int failures) {
  if (fault.kind != Kind::kRetry || failures > policy.retries) return tl::unexpected(fault.error);
  const double wait = fault.wait.value_or(0);
  if (wait > policy.longest_wait)
    return Fail(fault.error.code,
                fmt::format("{}; it asks to wait {:.0f} seconds", fault.error.message, wait));
  return std::max(wait, Backoff(policy, failures));
}

}  // namespace latte

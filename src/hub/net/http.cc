#include "src/hub/net/http.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "src/base/strings.h"
#include "src/http/client/client.h"

namespace latte {
namespace {

constexpr size_t kMostSkippedBytes = 64 << 10;
constexpr size_t kMostOrigins = 8;  // that connections are kept for
constexpr auto kStopEvery = std::chrono::milliseconds(50);

using NetKind = NetError::Kind;

NetKind KindOf(HttpFailure failure) {
  switch (failure) {
    case HttpFailure::kName:
      return NetKind::kName;
    case HttpFailure::kConnect:
      return NetKind::kConnect;
    case HttpFailure::kProxy:
      return NetKind::kProxy;
    case HttpFailure::kTls:
      return NetKind::kTls;
    case HttpFailure::kTimeout:
      return NetKind::kStalled;
    case HttpFailure::kRequest:
      return NetKind::kRejected;
    default:
      return NetKind::kBroken;
  }
}

template <class T>
bool ReadDigits(std::string_view text, T* value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stop == end && *value >= 0;
}

// "Sun, 06 Nov 1994 08:49:37 GMT", or as it was written before: "Sunday, 06-Nov-94 08:49:37 GMT".
// Seconds since 1970.
std::optional<int64_t> ReadDate(std::string_view text) {
  constexpr std::string_view kMonths = "janfebmaraprmayjunjulaugsepoctnovdec";
  text.remove_prefix(std::min(text.find(',') + 1, text.size()));
  std::array<std::string_view, 7> parts;  // day, month, year, hour, minute, second, zone
  for (std::string_view& part : parts) {
    text.remove_prefix(std::min(text.find_first_not_of(" -:"), text.size()));
    part = text.substr(0, text.find_first_of(" -:"));
    text.remove_prefix(part.size());
  }
  std::tm date = {};
  const size_t month = parts[1].size() == 3 ? kMonths.find(Lowered(parts[1])) : kMonths.npos;
  if (!ReadDigits(parts[0], &date.tm_mday) || month == kMonths.npos || month % 3 != 0 ||
      !ReadDigits(parts[2], &date.tm_year) || !ReadDigits(parts[3], &date.tm_hour) ||
      !ReadDigits(parts[4], &date.tm_min) || !ReadDigits(parts[5], &date.tm_sec) ||
      parts[6] != "GMT" || date.tm_year > 9999 || date.tm_mday > 31 || date.tm_hour > 23 ||
      date.tm_min > 59 || date.tm_sec > 60)
    return std::nullopt;
  date.tm_mon = static_cast<int>(month / 3);
  if (date.tm_year >= 100) date.tm_year -= 1900;
  if (date.tm_year >= 0 && date.tm_year < 70) date.tm_year += 100;
  return timegm(&date);
}

// One request in progress.
struct Transfer {
  const HttpBody& body;
  HttpHead head;
  bool begun = false;
  bool wanted = false;
  bool over = false;
  size_t skipped = 0;
  std::optional<NetError> error;

  void OnHead(const HttpResponse& response) {
    head.status = response.status;
    for (const auto& [name, value] : response.fields.list()) head.headers[Lowered(name)] = value;
    head.retry_after = RetryAfter(head.Get("retry-after"), std::time(nullptr));
    begun = true;
    wanted = body.begin(head);
  }

  // False: the rest of the body is not read. Reading a short one that is not wanted keeps the
  // connection.
  bool OnBody(std::string_view piece) {
    if (!wanted) return (skipped += piece.size()) <= kMostSkippedBytes;
    if (body.write(std::as_bytes(std::span(piece)))) return true;
    error = NetError{NetKind::kRejected, "the body was refused"};
    return false;
  }

  void OnEnd(const Status& status, HttpFailure failure) {
    over = true;
    if (!status) error = NetError{KindOf(failure), status.error().message};
  }
};

HttpRequest RequestOf(const HubRequest& request, const HttpUrl& url,
                      const std::string& user_agent) {
  HttpRequest out;
  out.method = "GET";
  out.path = url.path.empty() ? "/" : url.path;
  out.query = url.query;
  out.fields.Add("User-Agent", user_agent);
  for (const std::string& header : request.headers) {
    const size_t colon = std::min(header.find(':'), header.size());
    out.fields.Add(
        header.substr(0, colon),
        std::string(Trimmed(std::string_view(header).substr(std::min(colon + 1, header.size())))));
  }
  return out;
}

class ClientHttp final : public Http {
 public:
  ClientHttp(HttpSettings settings, ProxyVariables proxies, const std::atomic<bool>& stop)
      : settings_(std::move(settings)), proxies_(std::move(proxies)), stop_(stop) {}

  struct Origin {
    std::unique_ptr<HttpClient> client;
    std::string proxy;  // that reads the requests; empty: none
  };

  // The connections to the origin of `url`.
  Result<const Origin*> OriginOf(const HttpUrl& url) {
    if (const auto known = origins_.find(url.Origin()); known != origins_.end())
      return &known->second;
    const std::chrono::milliseconds timeout(std::llround(settings_.timeout * 1000));
    HttpClientOptions options;
    options.connect_timeout = timeout;
    options.first_byte_timeout = timeout;
    options.stall_timeout = timeout;
    options.max_body_bytes = std::numeric_limits<int64_t>::max();  // `write` decides
    options.connect_advice = "check the network, HF_ENDPOINT and https_proxy";
    options.tls_advice = "behind a proxy with a certificate of its own set SSL_CERT_FILE";
    LATTE_ASSIGN_OR_RETURN(options.proxy, ProxyFor(url, proxies_));
    Origin out;
    if (options.proxy && url.scheme == HttpUrl::Scheme::kHttp) out.proxy = options.proxy->Text();
    LATTE_ASSIGN_OR_RETURN(out.client, HttpClient::Create(url, options));
    if (origins_.size() == kMostOrigins) origins_.clear();
    return &origins_.emplace(url.Origin(), std::move(out)).first->second;
  }

  tl::expected<HttpHead, NetError> Get(const HubRequest& request, const HttpBody& body) override {
    const Result<HttpUrl> url = ParseWebUrl(request.url);
    if (!url) return tl::unexpected(NetError{NetKind::kRejected, url.error().message});
    const Result<const Origin*> origin = OriginOf(*url);
    if (!origin) return tl::unexpected(NetError{NetKind::kRejected, origin.error().message});
    HttpClient& client = *(*origin)->client;
    Transfer transfer{body, {}};
    transfer.head.proxy = (*origin)->proxy;
    HttpClient::CallId call = 0;
    const auto end = [&] {
      client.Cancel(call);
      client.Stop();
      transfer.over = true;
    };
    call = client.Start(RequestOf(request, *url, settings_.user_agent),
                        {.on_head = [&](const HttpResponse& head) { transfer.OnHead(head); },
                         .on_body =
                             [&](std::string_view piece) {
                               if (!transfer.OnBody(piece)) end();
                             },
                         .on_end =
                             [&](const Status& status, HttpFailure failure) {
                               transfer.OnEnd(status, failure);
                               client.Stop();
                             }});
    while (!transfer.over) {
      client.RunFor(kStopEvery);
      if (transfer.over || !stop_.load()) continue;
      end();
      transfer.error = NetError{NetKind::kStopped, "stopped"};
    }
    const bool unwanted = transfer.begun && !transfer.wanted;
    if (transfer.error && !unwanted) return tl::unexpected(*transfer.error);
    return transfer.head;
  }

 private:
  const HttpSettings settings_;
  const ProxyVariables proxies_;
  const std::atomic<bool>& stop_;
  std::map<std::string, Origin> origins_;
};

}  // namespace

const std::string& HttpHead::Get(const std::string& name) const {
  static const std::string kNone;
  const auto it = headers.find(name);
  return it == headers.end() ? kNone : it->second;
}

std::optional<double> RetryAfter(std::string_view value, int64_t now) {
  int64_t seconds = 0;
  if (ReadDigits(value, &seconds)) return static_cast<double>(seconds);
  const std::optional<int64_t> date = ReadDate(value);
  if (!date) return std::nullopt;
  return static_cast<double>(std::max<int64_t>(0, *date - now));
}

HttpFactory HttpClients(HttpSettings settings, const std::atomic<bool>& stop) {
  return [settings = std::move(settings), proxies = ReadProxyVariables(),
          &stop]() -> Result<std::unique_ptr<Http>> {
    LATTE_ASSIGN_OR_RETURN(const HttpUrl endpoint, ParseWebUrl(settings.endpoint));
    auto out = std::make_unique<ClientHttp>(settings, proxies, stop);
    LATTE_RETURN_IF_ERROR(out->OriginOf(endpoint));
    return out;
  };
}

}  // namespace latte

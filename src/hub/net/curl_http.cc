#include "src/hub/net/curl_http.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <curl/curl.h>
#include <fmt/format.h>

#include "src/base/strings.h"
#include "src/hub/net/url.h"

namespace latte {
namespace {

constexpr size_t kMostHeaderBytes = 64 << 10;
constexpr size_t kMostSkippedBytes = 64 << 10;

using NetKind = NetError::Kind;

// One request in progress.
struct Call {
  CURL* easy;
  const HttpBody& body;
  const std::atomic<bool>& stop;
  HttpHead head;
  size_t header_bytes = 0;
  bool begun = false;
  bool wanted = false;
  bool rejected = false;
  size_t skipped = 0;

  // Calls body.begin once the head is complete.
  void Begin() {
    if (begun) return;
    begun = true;
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    head.status = static_cast<int>(status);
    curl_off_t seconds = 0;
    if (curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK &&
        !head.Get("retry-after").empty())
      head.retry_after = static_cast<double>(seconds);
    wanted = body.begin(head);
  }
};

size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  auto& call = *static_cast<Call*>(user);
  const std::string_view line(data, size * count);
  call.header_bytes += line.size();
  if (call.header_bytes > kMostHeaderBytes) return 0;
  // A status line begins a new head: of a proxy or an interim response before.
  if (line.starts_with("HTTP/")) call.head = {};
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos && !line.starts_with("HTTP/"))
    call.head.headers[Lowered(line.substr(0, colon))] = Trimmed(line.substr(colon + 1));
  return line.size();
}

size_t OnBody(char* data, size_t size, size_t count, void* user) {
  auto& call = *static_cast<Call*>(user);
  call.Begin();
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size * count);
  if (call.wanted) {
    call.rejected = !call.body.write(bytes);
    return call.rejected ? CURL_WRITEFUNC_ERROR : bytes.size();
  }
  // Reading a short body that is not wanted keeps the connection.
  call.skipped += bytes.size();
  return call.skipped > kMostSkippedBytes ? CURL_WRITEFUNC_ERROR : bytes.size();
}

int OnProgress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Call*>(user)->stop.load() ? 1 : 0;
}

// What failed, in the words of libcurl, and what to do about it.
NetError ErrorOf(CURLcode code, const Call& call, const std::string& url, const char* detail) {
  if (call.stop.load()) return {NetKind::kStopped, "stopped"};
  if (call.rejected) return {NetKind::kRejected, "the body was refused"};
  const Result<UrlOrigin> origin = OriginOf(url);
  const std::string host = origin ? origin->host + ":" + origin->port : "the server";
  const std::string_view why = *detail != '\0' ? detail : curl_easy_strerror(code);
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return {NetKind::kName, fmt::format("{}: no address for this name ({}); check the network, "
                                          "HF_ENDPOINT and https_proxy",
                                          host, why)};
    case CURLE_COULDNT_CONNECT:
      return {NetKind::kConnect,
              fmt::format("{}: no connection ({}); check the network, HF_ENDPOINT "
                          "and https_proxy",
                          host, why)};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
      return {NetKind::kTls, fmt::format("{}: no secure connection ({}); behind a proxy with a "
                                         "certificate of its own set SSL_CERT_FILE",
                                         host, why)};
    case CURLE_OPERATION_TIMEDOUT:
      return {NetKind::kStalled, fmt::format("{}: silent for too long ({})", host, why)};
    default:
      return {NetKind::kBroken, fmt::format("{}: the response broke off ({})", host, why)};
  }
}

class CurlHttp final : public Http {
 public:
  CurlHttp(CURL* easy, CurlOptions options, const std::atomic<bool>& stop)
      : easy_(easy), options_(std::move(options)), stop_(stop) {}
  CurlHttp(const CurlHttp&) = delete;
  CurlHttp& operator=(const CurlHttp&) = delete;
  ~CurlHttp() override { curl_easy_cleanup(easy_); }

  tl::expected<HttpHead, NetError> Get(const HubRequest& request, const HttpBody& body) override {
    curl_easy_reset(easy_);  // keeps the connections
    Call call{easy_, body, stop_, {}};
    curl_slist* headers = nullptr;
    for (const std::string& header : request.headers)
      headers = curl_slist_append(headers, header.c_str());
    char detail[CURL_ERROR_SIZE] = "";
    Set(CURLOPT_ERRORBUFFER, detail);
    Set(CURLOPT_URL, request.url.c_str());
    Set(CURLOPT_HTTPHEADER, headers);
    Configure();
    Set(CURLOPT_HEADERFUNCTION, OnHeader);
    Set(CURLOPT_HEADERDATA, &call);
    Set(CURLOPT_WRITEFUNCTION, OnBody);
    Set(CURLOPT_WRITEDATA, &call);
    Set(CURLOPT_XFERINFOFUNCTION, OnProgress);
    Set(CURLOPT_XFERINFODATA, &call);
    const CURLcode code = curl_easy_perform(easy_);
    curl_slist_free_all(headers);
    const bool unwanted = call.begun && !call.wanted;
    if (code != CURLE_OK && !unwanted)
      return tl::unexpected(ErrorOf(code, call, request.url, detail));
    call.Begin();
    return call.head;
  }

 private:
  template <class T>
  void Set(CURLoption option, T value) {
    curl_easy_setopt(easy_, option, value);
  }

  void Configure() {
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_FOLLOWLOCATION, 0L);
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_NOPROGRESS, 0L);
    Set(CURLOPT_BUFFERSIZE, 256L << 10);
    Set(CURLOPT_USERAGENT, options_.user_agent.c_str());
    Set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    Set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.timeout * 1000));
    Set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    Set(CURLOPT_LOW_SPEED_TIME, std::max(1L, static_cast<long>(options_.timeout)));
    if (!options_.certificates.empty()) Set(CURLOPT_CAINFO, options_.certificates.c_str());
  }

  CURL* easy_;
  CurlOptions options_;
  const std::atomic<bool>& stop_;
};

}  // namespace

const std::string& HttpHead::Get(const std::string& name) const {
  static const std::string kNone;
  const auto it = headers.find(name);
  return it == headers.end() ? kNone : it->second;
}

Result<HttpFactory> CurlClients(const CurlOptions& options, const std::atomic<bool>& stop) {
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return Fail(Code::kUnavailable, "libcurl does not start");
  return [options, &stop]() -> Result<std::unique_ptr<Http>> {
    CURL* easy = curl_easy_init();
    if (easy == nullptr) return Exhausted("no memory for a connection");
    return std::make_unique<CurlHttp>(easy, options, stop);
  };
}

}  // namespace latte

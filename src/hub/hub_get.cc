#include "src/hub/hub_get.h"

#include <fmt/format.h>

#include "src/http/client/url.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr int kMostRedirects = 5;

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

tl::unexpected<NetError> Reject(const std::string& url, std::string_view why) {
  return tl::unexpected(
      NetError{NetError::Kind::kRejected,
               fmt::format("{}: {}", Printable(url.substr(0, url.find('?')), 200), why)});
}

// The address that a redirect from `url` leads to.
tl::expected<std::string, NetError> Next(const std::string& url, const HttpHead& head,
                                         const HttpUrl& from, const HttpUrl& endpoint) {
  if (head.Get("location").empty()) return Reject(url, "a redirect without an address");
  const Result<HttpUrl> next = ResolveLocation(from, head.Get("location"));
  if (!next) return Reject(url, "a redirect to no http or https address");
  if (next->scheme != HttpUrl::Scheme::kHttps && endpoint.scheme == HttpUrl::Scheme::kHttps)
    return Reject(url, fmt::format("a redirect to http://{}, which is not secure, is not followed",
                                   next->host));
  return next->Text();
}

}  // namespace

tl::expected<HubReply, NetError> HubGet(Http& http, const HubEnvironment& hub,
                                        const std::string& url,
                                        const std::vector<std::string>& headers,
                                        const HttpBody& body, const OnRedirect& on_redirect) {
  const Result<HttpUrl> endpoint = ParseWebUrl(hub.endpoint);
  if (!endpoint) return Reject(hub.endpoint, "no address");
  HttpBody wanted = body;
  wanted.begin = [&](const HttpHead& head) {
    return (head.status == 200 || head.status == 206) && body.begin(head);
  };
  HubReply reply;
  reply.url = url;
  for (int redirects = 0;; ++redirects) {
    const Result<HttpUrl> asked = ParseWebUrl(reply.url);
    if (!asked) return Reject(reply.url, "no http or https address");
    reply.redirected = reply.redirected || !asked->SameOrigin(*endpoint);
    HubRequest request{reply.url, headers};
    if (!reply.redirected && !hub.token.empty())
      request.headers.push_back("Authorization: Bearer " + hub.token);
    auto head = http.Get(request, wanted);
    if (!head) return tl::unexpected(std::move(head).error());
    reply.head = *std::move(head);
    if (!IsRedirect(reply.head.status)) return reply;
    if (redirects == kMostRedirects) return Reject(url, "more than five redirects");
    if (on_redirect && !on_redirect(reply.head)) return Reject(url, "its redirect is not followed");
    auto next = Next(reply.url, reply.head, *asked, *endpoint);
    if (!next) return tl::unexpected(std::move(next).error());
    reply.url = *std::move(next);
  }
}

std::string ListingUrl(const HubEnvironment& hub, const std::string& repo,
                       const std::string& revision) {
  return fmt::format("{}/api/models/{}/revision/{}?blobs=true", hub.endpoint, repo,
                     UrlEscape(revision, false));
}

std::string FileUrl(const HubEnvironment& hub, const std::string& repo, const std::string& commit,
                    const std::string& path) {
  return fmt::format("{}/{}/resolve/{}/{}", hub.endpoint, repo, commit, UrlEscape(path, true));
}

}  // namespace latte

// Requests to the Hub and to the targets of its redirects. The token is sent only to the Hub's own
// address.
#pragma once

#include <string>
#include <vector>

#include "src/hub/environment.h"
#include "src/hub/net/http.h"

namespace latte {

struct HubReply {
  HttpHead head;            // of the last response
  std::string url;          // that gave it
  bool redirected = false;  // by another host than the endpoint's
};

// Asked for every redirect before it is followed; false: it is not.
using OnRedirect = std::function<bool(const HttpHead&)>;

// Sends a GET to `url` and follows redirects: at most five, to https, or to http if the endpoint is
// http. The token is sent while scheme, host and port are the endpoint's, never after they were
// not. `body` receives a response of status 200 or 206. Errors: of Http; kRejected for a redirect
// that is not followed.
[[nodiscard]] tl::expected<HubReply, NetError> HubGet(Http& http, const HubEnvironment& hub,
                                                      const std::string& url,
                                                      const std::vector<std::string>& headers,
                                                      const HttpBody& body,
                                                      const OnRedirect& on_redirect = {});

// "https://huggingface.co/api/models/org/name/revision/main?blobs=true"
std::string ListingUrl(const HubEnvironment& hub, const std::string& repo,
                       const std::string& revision);
// "https://huggingface.co/org/name/resolve/<commit>/<path>"
std::string FileUrl(const HubEnvironment& hub, const std::string& repo, const std::string& commit,
                    const std::string& path);

}  // namespace latte

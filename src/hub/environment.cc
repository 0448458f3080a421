#include "src/hub/environment.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include "src/base/file.h"
#include "src/base/strings.h"
#include "src/base/variables.h"
#include "src/checkpoint/hub_cache.h"
#include "src/http/client/url.h"

namespace latte {
namespace {

bool IsSet(const char* name) {
  const std::string value = InCapitals(Env(name));
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

Status ReadToken(HubEnvironment* out) {
  if (IsSet("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return {};
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    out->token = Trimmed(Env(name));
    out->token_from = name;
    if (!out->token.empty()) return {};
  }
  const std::string named = Env("HF_TOKEN_PATH");
  const std::string path = named.empty() ? HubHomeFolder() + "/token" : ExpandedPath(named);
  if (!IsRegularFile(path)) return {};
  LATTE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, 64 << 10));
  out->token = Trimmed(text);
  out->token_from = path;
  return {};
}

// A line break in a token would add a header to requests.
Status CheckToken(const HubEnvironment& hub) {
  for (const char c : hub.token)
    if (c <= 0x20 || c >= 0x7f)
      return InvalidArgument(
          fmt::format("{}: expected a token of visible ASCII characters, found "
                      "another character in it",
                      hub.token_from));
  return {};
}

}  // namespace

Result<HubEnvironment> ReadHubEnvironment() {
  HubEnvironment out;
  if (const std::string endpoint = Env("HF_ENDPOINT"); !endpoint.empty()) out.endpoint = endpoint;
  while (out.endpoint.ends_with('/')) out.endpoint.pop_back();
  if (const auto origin = ParseWebUrl(out.endpoint); !origin)
    return InvalidArgument("HF_ENDPOINT: " + origin.error().message);
  if (out.endpoint.find_first_of("?#") != std::string::npos)
    return InvalidArgument("HF_ENDPOINT: expected an address without '?' and '#'");
  out.cache = HubCacheFolder();
  out.offline = IsSet("HF_HUB_OFFLINE") || IsSet("TRANSFORMERS_OFFLINE");
  LATTE_RETURN_IF_ERROR(ReadToken(&out));
  LATTE_RETURN_IF_ERROR(CheckToken(out));
  return out;
}

}  // namespace latte

#include "src/serve/options.h"

#include <fmt/format.h>

#include "src/base/fields/fields.h"

namespace latte {
namespace {

Status CheckEntries(std::string_view name, const std::vector<std::string>& entries, size_t most) {
  if (entries.size() > most)
    return InvalidArgument(
        fmt::format("{}: expected at most {} of them, found {}", name, most, entries.size()));
  for (const std::string& entry : entries)
    if (entry.empty()) return InvalidArgument(fmt::format("{}: expected a text, found none", name));
  return {};
}

}  // namespace

Status ServeOptions::Validate() const {
  LATTE_RETURN_IF_ERROR(CheckFields(*this, '_'));
  LATTE_RETURN_IF_ERROR(CheckEntries("served_model_name", served_model_name, 64));
  LATTE_RETURN_IF_ERROR(CheckEntries("api_key", api_key, 1024));
  LATTE_RETURN_IF_ERROR(CheckEntries("allowed_host", allowed_host, 64));
  LATTE_RETURN_IF_ERROR(CheckEntries("cors_origin", cors_origin, 64));
  if (host.empty() && uds.empty())
    return InvalidArgument("host: expected an address, or --uds PATH, found neither");
  if (ssl_certfile.empty() != ssl_keyfile.empty())
    return InvalidArgument(
        "ssl_certfile: expected --ssl-certfile and --ssl-keyfile together, found only one");
  return {};
}

}  // namespace latte

#include "apps/flags/remote_flags.h"

#include <cstdlib>

namespace latte {
namespace {

std::string VariableOrEmpty(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Flag RemoteFlags::Add(const FlagSet& app) {
  const Flag flag = app.Add("--url", url,
                            "server with the OpenAI API: http://HOST:PORT, https://… or unix:PATH, "
                            "with or without /v1");
  app.Add("--model", model, "its model (default: the first one that the server lists)");
  app.Add("--api-key", api_key,
          "key for the server (default: $LATTE_API_KEY, else $OPENAI_API_KEY)");
  app.Add("--ca-file", ca_file,
          "PEM file of certificates to trust, for https (default: those of the system)");
  return flag;
}

ApiAddress RemoteFlags::Address() const {
  std::string key = api_key;
  if (key.empty()) key = VariableOrEmpty("LATTE_API_KEY");
  if (key.empty()) key = VariableOrEmpty("OPENAI_API_KEY");
  return {url, key};
}

}  // namespace latte

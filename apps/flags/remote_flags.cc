#include "apps/flags/remote_flags.h"

#include "src/base/variables.h"

namespace latte {

void RemoteFlags::AddUrl(const FlagSet& app, bool required) {
  Flag flag =
      app.Group("Server").Add("--url", url,
                              "server with the OpenAI API: http://HOST:PORT, https://HOST:PORT or "
                              "unix:PATH, with or without /v1");
  if (required) flag.Required();
}

std::vector<std::pair<std::string, Flag>> RemoteFlags::AddOthers(const FlagSet& app) {
  std::vector<std::pair<std::string, Flag>> out;
  const FlagSet server = app.Group("Server");
  const auto add = [&](const std::string& name, const std::string& names, std::string& value,
                       const std::string& help) -> Flag& {
    return out.emplace_back(name, server.Add(names, value, help)).second;
  };
  add("--model", "-m,--model", model, "model of the server (default: the first one that it lists)");
  add("--api-key", "--api-key", api_key,
      "key for the server (default: $LATTE_API_KEY, else $OPENAI_API_KEY)");
  add("--ca-file", "--ca-file", ca_file,
      "PEM file of certificates to trust, for https (default: the system's)")
      .Value("FILE");
  return out;
}

ApiAddress RemoteFlags::Address() const {
  std::string key = api_key;
  if (key.empty()) key = Env("LATTE_API_KEY");
  if (key.empty()) key = Env("OPENAI_API_KEY");
  return {url, key};
}

}  // namespace latte

// The flags of commands that talk to a server.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "apps/flags/flag_set.h"
#include "src/session/remote/api_server.h"

namespace latte {

struct RemoteFlags {
  std::string url;
  std::string model;  // empty: the first one that the server lists
  std::string api_key;
  std::string ca_file;

  void AddUrl(const FlagSet& app, bool required = false);
  // --model, --api-key and --ca-file, which are returned by name.
  std::vector<std::pair<std::string, Flag>> AddOthers(const FlagSet& app);
  // The key is that of the flag, else of $LATTE_API_KEY, else of $OPENAI_API_KEY.
  ApiAddress Address() const;
};

}  // namespace latte

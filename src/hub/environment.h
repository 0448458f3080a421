// The variables and files with the address of the Hub and the user's token, by the rules of
// huggingface_hub.
#pragma once

#include <string>

#include "latte/status.h"

namespace latte {

struct HubEnvironment {
  std::string endpoint = "https://huggingface.co";  // HF_ENDPOINT, without '/' at the end
  std::string cache;                                // HubCacheFolder()
  std::string token;                                // empty: none
  std::string token_from;                           // "HF_TOKEN" or the path of a file
  bool offline = false;                             // HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE
};

// The token is taken from HF_TOKEN, HUGGING_FACE_HUB_TOKEN, the file of HF_TOKEN_PATH or "token" in
// HubHomeFolder(), the first that is not empty; HF_HUB_DISABLE_IMPLICIT_TOKEN leaves it out.
// Errors: kInvalidArgument if the endpoint is no address or the token has other than visible ASCII
// characters; of ReadFile.
[[nodiscard]] Result<HubEnvironment> ReadHubEnvironment();

}  // namespace latte

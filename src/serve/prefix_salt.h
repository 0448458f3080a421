// The salt of a request's cached prefixes. Requests with different salts share no prefix.
#pragma once

#include <string>
#include <string_view>

namespace latte {

// What an API key gives PrefixSalt instead of itself.
std::string SaltSecretOf(std::string_view api_key);

// `secret`: of SaltSecretOf; empty: all clients share. `cache_salt`: the request's own, which a
// client may choose freely. With a secret, the result depends on both, and no client without the
// key can choose a `cache_salt` with the same result. The cache keeps a copy for each prefix, in
// memory and in files, so the result has 71 bytes at most.
std::string PrefixSalt(std::string_view secret, std::string cache_salt);

}  // namespace latte

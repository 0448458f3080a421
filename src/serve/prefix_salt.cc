#include "src/serve/prefix_salt.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "src/base/check.h"
#include "src/base/strings.h"

namespace latte {
namespace {

constexpr std::string_view kPurpose = "latte: salt of cached prefixes";
// Longer ones are replaced by a digest, which has more bytes with its mark: so no other salt of
// a client is equal to it, nor to one that was made with a key.
constexpr size_t kLongestAsItIs = 64;

// HMAC-SHA-256 of text under the secret.
std::string MacOf(std::string_view secret, std::string_view text) {
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned bytes = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  const unsigned char* done = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                                   data, text.size(), mac, &bytes);
  LATTE_CHECK(done != nullptr);
  return std::string(reinterpret_cast<const char*>(mac), bytes);
}

}  // namespace

std::string SaltSecretOf(std::string_view api_key) { return MacOf(api_key, kPurpose); }

std::string PrefixSalt(std::string_view secret, std::string cache_salt) {
  if (!secret.empty()) return "by key:" + InHex(MacOf(secret, cache_salt));
  if (cache_salt.size() <= kLongestAsItIs) return cache_salt;
  return "digest:" + InHex(MacOf(kPurpose, cache_salt));
}

}  // namespace latte

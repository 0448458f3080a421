#include "src/comm/control/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "src/base/check.h"

namespace latte {
namespace {

const unsigned char* Unsigned(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Unsigned(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

}  // namespace

std::string Digest(std::string_view text) {
  std::string digest(kDigestBytes, '\0');
  const int done =
      EVP_Digest(text.data(), text.size(), Unsigned(digest), nullptr, EVP_sha256(), nullptr);
  LATTE_CHECK(done == 1);
  return digest;
}

std::string Proof(std::string_view secret, std::string_view text) {
  std::string proof(kDigestBytes, '\0');
  const unsigned char* done = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                                   Unsigned(text), text.size(), Unsigned(proof), nullptr);
  LATTE_CHECK(done != nullptr);
  return proof;
}

bool SameProof(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  LATTE_CHECK(RAND_bytes(Unsigned(bytes), static_cast<int>(count)) == 1, "no random bytes");
  return bytes;
}

}  // namespace latte

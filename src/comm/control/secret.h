// Proof of a shared secret, and digests (OpenSSL).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace latte {

inline constexpr size_t kDigestBytes = 32;

// SHA-256 of text; HMAC-SHA-256 of text under the secret. 32 bytes.
std::string Digest(std::string_view text);
std::string Proof(std::string_view secret, std::string_view text);

// Compares in a time that does not depend on where the bytes differ.
bool SameProof(std::string_view a, std::string_view b);

// From the system's generator, for nonces and secrets.
std::string RandomBytes(size_t count);

}  // namespace latte

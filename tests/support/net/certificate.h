// Certificates for tests of TLS.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace latte::testing_support {

template <class Write>
inline void WritePem(const std::string& path, const Write& write) {
  FILE* const file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(write(file), 1);
  std::fclose(file);
}

// A certificate that signs itself, for the names in `names`: "DNS:localhost,IP:127.0.0.1".
inline void MakeCertificate(const char* names, const std::string& certificate,
                            const std::string& key) {
  std::string curve = "P-256";
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> pair(
      EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", curve.data()), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> x509(X509_new(), X509_free);
  ASSERT_TRUE(pair && x509);
  X509_set_version(x509.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x509.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(x509.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(x509.get()), 3600);
  X509_set_pubkey(x509.get(), pair.get());
  X509_NAME* const name = X509_get_subject_name(x509.get());
  const unsigned char text[] = "latte test";
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0);
  X509_set_issuer_name(x509.get(), name);
  X509_EXTENSION* const extension =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names);
  X509_add_ext(x509.get(), extension, -1);
  X509_EXTENSION_free(extension);
  ASSERT_GT(X509_sign(x509.get(), pair.get(), EVP_sha256()), 0);
  WritePem(certificate, [&](FILE* file) { return PEM_write_X509(file, x509.get()); });
  WritePem(key, [&](FILE* file) {
    return PEM_write_PrivateKey(file, pair.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

}  // namespace latte::testing_support

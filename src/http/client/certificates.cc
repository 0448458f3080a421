#include "src/http/client/certificates.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <boost/system/error_code.hpp>
#include <fmt/format.h>
#include <openssl/x509.h>

#include "src/base/file.h"
#include "src/base/variables.h"

namespace latte {
namespace {

// Where systems keep them in one file. OpenSSL knows the place of the system that it was built for
// only, which another system may not have.
constexpr const char* kBundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora
    "/etc/ssl/ca-bundle.pem",                             // openSUSE
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Red Hat
    "/etc/ssl/cert.pem",
};

Status LoadFile(const std::string& file, const std::string& named_by,
                boost::asio::ssl::context* tls) {
  boost::system::error_code error;
  tls->load_verify_file(file, error);
  if (!error) return {};
  return InvalidArgument(fmt::format("{}{}: expected a PEM file with certificates to trust: {}",
                                     named_by, file, error.message()));
}

// Whether OpenSSL finds certificates in a folder, where their names are hashes: "5a7722fb.0".
bool HasHashedNames(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    if (entry->path().extension() == ".0") return true;
  return false;
}

}  // namespace

Status LoadAuthorities(const std::string& file, boost::asio::ssl::context* tls) {
  if (!file.empty()) return LoadFile(file, "", tls);
  const std::string named_folder = Env("SSL_CERT_DIR");
  const std::string folder = named_folder.empty() ? X509_get_default_cert_dir() : named_folder;
  boost::system::error_code ignored;
  tls->add_verify_path(folder, ignored);
  if (const std::string named = Env("SSL_CERT_FILE"); !named.empty())
    return LoadFile(named, "SSL_CERT_FILE: ", tls);
  if (const std::string named = Env("CURL_CA_BUNDLE"); !named.empty())
    return LoadFile(named, "CURL_CA_BUNDLE: ", tls);
  if (const std::string usual = X509_get_default_cert_file(); IsRegularFile(usual))
    return LoadFile(usual, "", tls);
  if (!named_folder.empty() || HasHashedNames(folder)) return {};
  for (const char* const bundle : kBundles)
    if (IsRegularFile(bundle)) return LoadFile(bundle, "", tls);
  return Fail(Code::kUnavailable,
              fmt::format("https: no certificates of authorities in {}, {} and the places of other "
                          "systems; install ca-certificates, or name a PEM file with SSL_CERT_FILE",
                          X509_get_default_cert_file(), folder));
}

}  // namespace latte

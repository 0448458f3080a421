#include "src/http/listen/tls_context.h"

#include <fmt/format.h>

namespace latte {

namespace ssl = boost::asio::ssl;

Result<std::unique_ptr<ssl::context>> LoadServerTls(const std::string& certificate,
                                                    const std::string& key) {
  auto tls = std::make_unique<ssl::context>(ssl::context::tls_server);
  boost::system::error_code error;
  tls->set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 |
                   ssl::context::no_sslv3 | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1 |
                   SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(tls->native_handle(), SSL_MODE_RELEASE_BUFFERS);  // of idle connections
  // A key with a password is refused; OpenSSL would ask the terminal.
  tls->set_password_callback([](size_t, auto) { return std::string(); }, error);
  tls->use_certificate_chain_file(certificate, error);
  if (error)
    return InvalidArgument(fmt::format("{}: expected a PEM file with a certificate: {}",
                                       certificate, error.message()));
  tls->use_private_key_file(key, ssl::context::pem, error);
  if (error)
    return InvalidArgument(fmt::format("{}: expected a PEM file with the key of {}: {}", key,
                                       certificate, error.message()));
  return tls;
}

}  // namespace latte

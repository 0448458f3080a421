// The CA certificates that a client trusts. Includes Boost; for files of src/http only.
#pragma once

#include <string>

#include <boost/asio/ssl/context.hpp>

#include "latte/status.h"

namespace latte {

// Trusts the certificates of the PEM file `file`. If it is empty: of the file SSL_CERT_FILE, else
// of CURL_CA_BUNDLE, else of the system's file; and of the folder SSL_CERT_DIR, else of the
// system's folder, as OpenSSL does. Errors: kInvalidArgument for a named file that cannot be used;
// kUnavailable if there are none.
[[nodiscard]] Status LoadAuthorities(const std::string& file, boost::asio::ssl::context* tls);

}  // namespace latte

// The server's certificate. Includes Boost; for files of src/http only.
#pragma once

#include <memory>
#include <string>

#include <boost/asio/ssl/context.hpp>

#include "latte/status.h"

namespace latte {

// A context for TLS 1.2 and later from two PEM files. Errors: kInvalidArgument for a file that
// cannot be read, a key with a password, or one that is not the certificate's.
[[nodiscard]] Result<std::unique_ptr<boost::asio::ssl::context>> LoadServerTls(
    const std::string& certificate, const std::string& key);

}  // namespace latte

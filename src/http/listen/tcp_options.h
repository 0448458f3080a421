// The options of a server's TCP connections. Includes Boost; for files of
// src/http only.
#pragma once

#include <boost/asio/ip/tcp.hpp>

namespace latte {

// A vanished client, which sends neither data nor a reset, is noticed after a minute or so. What an
// option needs and the system lacks is left out.
void SetTcpOptions(boost::asio::ip::tcp::socket& socket);

}  // namespace latte

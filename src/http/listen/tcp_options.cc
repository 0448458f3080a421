#include "src/http/listen/tcp_options.h"

#include <boost/asio/socket_base.hpp>
#include <boost/system/error_code.hpp>
#include <netinet/tcp.h>

namespace latte {
namespace {

// Bytes that the system keeps for a client that does not read. Without a bound it keeps megabytes,
// and a stalled client is noticed late.
constexpr int kSystemSendBytes = 128 << 10;

}  // namespace

void SetTcpOptions(boost::asio::ip::tcp::socket& socket) {
  boost::system::error_code ignored;
  socket.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(boost::asio::socket_base::send_buffer_size(kSystemSendBytes), ignored);
  socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
  using Seconds = boost::asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
  using Interval = boost::asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
  using Count = boost::asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPCNT>;
  socket.set_option(Seconds(30), ignored);
  socket.set_option(Interval(10), ignored);
  socket.set_option(Count(3), ignored);
}

}  // namespace latte

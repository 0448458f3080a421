#include "src/http/client/client_connect.h"

#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/net/scripted_server.h"

namespace latte::client_connect_test {
namespace {

using boost::asio::ip::make_address;
using boost::asio::ip::tcp;
using testing_support::Peer;
using testing_support::ScriptedServer;

tcp::endpoint At(const char* address, int port) {
  return {make_address(address), static_cast<unsigned short>(port)};
}

// A port of 127.0.0.1 that never answers: the queue of its listener is full.
class BlackHole {
 public:
  BlackHole() {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address_), sizeof(address_)), 0);
    EXPECT_EQ(listen(listener_, 0), 0);
    socklen_t size = sizeof(address_);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address_), &size);
    while (!is_full_ && fillers_.size() < 100) Fill();
  }
  ~BlackHole() {
    for (const int fd : fillers_) close(fd);
    close(listener_);
  }
  BlackHole(const BlackHole&) = delete;
  BlackHole& operator=(const BlackHole&) = delete;
  int port() const { return ntohs(address_.sin_port); }
  bool is_full() const { return is_full_; }

 private:
  void Fill() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    fillers_.push_back(fd);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address_), sizeof(address_)) == 0) return;
    pollfd wait = {.fd = fd, .events = POLLOUT, .revents = 0};
    is_full_ = poll(&wait, 1, 200) == 0;
  }

  int listener_ = -1;
  sockaddr_in address_ = {};
  std::vector<int> fillers_;
  bool is_full_ = false;
};

struct Connection {
  std::unique_ptr<Transport> transport;
  ConnectError error;
};

// Connects `count` times, one after the other, and ends after `limit` without a result.
std::vector<Connection> Connect(const ClientConnector::Endpoints& endpoints, int count,
                                std::string* waits_for = nullptr,
                                std::chrono::milliseconds limit = std::chrono::minutes(1)) {
  boost::asio::io_context io;
  const HttpUrl url = *ParseUrl("http://h.example");
  const HttpClientOptions options;
  ClientConnector connector(io, url, options, endpoints);
  std::vector<Connection> out;
  for (int i = 0; i < count; ++i) {
    const auto socket = connector.Connect([&](auto result) {
      out.emplace_back();
      if (result) {
        out.back().transport = *std::move(result);
      } else {
        out.back().error = result.error();
      }
    });
    io.restart();
    io.run_for(limit);
    if (waits_for != nullptr) *waits_for = socket->waits_for();
    socket->Close();
  }
  for (Connection& connection : out) connection.transport.reset();  // before its io_context
  return out;
}

TEST(ClientConnect, TriesTheNextAddress) {
  const ScriptedServer server([](int, Peer& peer) { peer.Drain(); });
  const auto made = Connect({At("127.0.0.2", server.port()), At("127.0.0.1", server.port())}, 2);
  ASSERT_EQ(made.size(), 2u);
  for (const Connection& connection : made) EXPECT_EQ(connection.error.message, "");
}

TEST(ClientConnect, SaysWhatEveryAddressAnswered) {
  const auto made = Connect({At("::1", 1), At("127.0.0.1", 1)}, 1);
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].error.failure, HttpFailure::kConnect);
  const std::string& message = made[0].error.message;
  EXPECT_NE(message.find("[::1]:1: "), std::string::npos) << message;
  EXPECT_NE(message.find(", 127.0.0.1:1: Connection refused; is the server"), std::string::npos)
      << message;
  const ClientConnector::Endpoints many(7, At("127.0.0.1", 1));
  EXPECT_NE(Connect(many, 1)[0].error.message.find(", and 3 more"), std::string::npos);
}

// The next address is tried, too, and is the first one from then on.
TEST(ClientConnect, DoesNotWaitForASilentAddress) {
  const BlackHole hole;
  if (!hole.is_full()) GTEST_SKIP() << "this system answers for a listener whose queue is full";
  const ScriptedServer server([](int, Peer& peer) { peer.Drain(); });
  const ClientConnector::Endpoints endpoints = {At("127.0.0.1", hole.port()),
                                                At("127.0.0.1", server.port())};
  const auto made = Connect(endpoints, 2);
  ASSERT_EQ(made.size(), 2u);
  for (const Connection& connection : made) EXPECT_EQ(connection.error.message, "");

  std::string waits_for;
  EXPECT_TRUE(Connect({endpoints[0]}, 1, &waits_for, std::chrono::milliseconds(20)).empty());
  EXPECT_EQ(waits_for, fmt::format("127.0.0.1:{}", hole.port()));
}

TEST(ClientConnect, FamiliesInTurn) {
  const ClientConnector::Endpoints found = {At("192.0.2.1", 1), At("192.0.2.2", 1),
                                            At("2001:db8::1", 1), At("192.0.2.3", 1)};
  const ClientConnector::Endpoints expected = {found[2], found[0], found[1], found[3]};
  EXPECT_EQ(InTurn(found), expected);
  EXPECT_EQ(InTurn({}), ClientConnector::Endpoints());
}

}  // namespace
}  // namespace latte::client_connect_test

// Addresses, Unix sockets, TLS, the number of connections, and the end of the server.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/http/server.h"
#include "tests/support/http_server_run.h"
#include "tests/support/raw_client.h"
#include "tests/support/scratch_dir.h"

namespace latte::sockets_test {
namespace {

using testing_support::HttpServerRun;
using testing_support::RawClient;
using testing_support::ScratchDir;
using testing_support::TestHandler;

class HttpSockets : public testing::Test {
 protected:
  HttpServerOptions Unix() const {
    HttpServerOptions options = HttpServerRun::Patient();
    options.host = "";
    options.unix_socket = path_;
    return options;
  }
  // The error of Listen; a success is one too.
  static Error Refusal(const HttpServerOptions& options) {
    TestHandler handler;
    const auto server = HttpServer::Listen(options, &handler);
    return server ? Error{Code::kInternal, "the server listens"} : server.error();
  }
  static void ExpectAnswer(RawClient client) {
    client.Get("/");
    EXPECT_EQ(client.Receive().status, 200);
  }

  ScratchDir dir_;
  std::string path_ = dir_.File("socket");
};

// H26.
TEST_F(HttpSockets, LocalhostIsBothLoopbackAddresses) {
  HttpServerOptions options = HttpServerRun::Patient();
  options.host = "localhost";
  HttpServerRun run(options);
  ExpectAnswer(RawClient::Tcp(run.port()));
  for (const std::string& url : run.server().urls())
    if (url.starts_with("http://[::1]:")) ExpectAnswer(RawClient::Tcp6(run.port()));
  EXPECT_EQ(run.server().urls().back(), fmt::format("http://127.0.0.1:{}", run.port()));
}

TEST_F(HttpSockets, APortInUse) {
  HttpServerRun run;
  HttpServerOptions options;
  options.port = run.port();
  for (const std::string host : {"127.0.0.1", "localhost", "0.0.0.0"}) {
    options.host = host;
    const Error error = Refusal(options);
    EXPECT_EQ(error.code, Code::kUnavailable) << host;
    EXPECT_NE(error.message.find("choose another port with --port"), std::string::npos)
        << error.message;
  }
}

TEST_F(HttpSockets, AddressesThatAreNone) {
  HttpServerOptions options = HttpServerRun::Patient();
  options.host = "not a host";
  EXPECT_TRUE(Refusal(options).message.starts_with("host: expected a name or an address"));
  options.host = "192.0.2.1";  // of documentation, never of this machine
  EXPECT_TRUE(Refusal(options).message.starts_with("cannot listen on 192.0.2.1:"));
  options.host = "127.0.0.1";
  options.port = 65536;
  EXPECT_EQ(Refusal(options).message, "port: expected 0 to 65535, found 65536");
  options.host = "";
  EXPECT_EQ(Refusal(options).code, Code::kInvalidArgument);
}

TEST_F(HttpSockets, UnixSocketIsPrivateAndGoesWithTheServer) {
  {
    HttpServerRun run(Unix());
    EXPECT_EQ(run.server().urls(), std::vector<std::string>{"unix:" + path_});
    EXPECT_EQ(run.port(), 0);
    struct stat found = {};
    ASSERT_EQ(::stat(path_.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777u, 0600u);
    ExpectAnswer(RawClient::Unix(path_));
  }
  EXPECT_NE(::access(path_.c_str(), F_OK), 0);
}

TEST_F(HttpSockets, BothSocketsAtOnce) {
  HttpServerOptions options = Unix();
  options.host = "127.0.0.1";
  HttpServerRun run(options);
  ExpectAnswer(RawClient::Unix(path_));
  ExpectAnswer(RawClient::Tcp(run.port()));
}

TEST_F(HttpSockets, AStaleUnixSocketIsReplaced) {
  {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(fd);
  }
  HttpServerRun run(Unix());
  ExpectAnswer(RawClient::Unix(path_));
}

TEST_F(HttpSockets, ALiveUnixSocketIsNot) {
  HttpServerRun run(Unix());
  const Error error = Refusal(Unix());
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_EQ(error.message, path_ + ": another program listens on this socket");
  ExpectAnswer(RawClient::Unix(path_));
}

TEST_F(HttpSockets, AnotherFileIsNoUnixSocket) {
  std::ofstream(path_) << "precious";
  EXPECT_EQ(Refusal(Unix()).code, Code::kInvalidArgument);
  EXPECT_EQ(::access(path_.c_str(), F_OK), 0);
  path_ = dir_.File(std::string(200, 'x'));
  EXPECT_TRUE(Refusal(Unix()).message.starts_with("the path of a Unix socket has at most 107"));
  path_ = dir_.File("no/such/folder");
  EXPECT_TRUE(Refusal(Unix()).message.starts_with("cannot listen on " + path_));
}

// A later server at the same path keeps its socket when the earlier one ends.
TEST_F(HttpSockets, TheSocketOfALaterServerStays) {
  HttpServerRun earlier(Unix());
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  HttpServerRun later(Unix());
  earlier.Destroy();
  ExpectAnswer(RawClient::Unix(path_));
}

// H21.
TEST_F(HttpSockets, TooManyConnections) {
  HttpServerOptions options = HttpServerRun::Patient();
  options.max_connections = 2;
  HttpServerRun run(options);
  std::vector<RawClient> open;
  for (int i = 0; i < 2; ++i) {
    open.push_back(RawClient::Tcp(run.port()));
    open.back().Get("/");
    EXPECT_EQ(open.back().Receive().status, 200);
  }
  for (int i = 0; i < 200; ++i) {
    RawClient refused = RawClient::Tcp(run.port());
    refused.Get("/");
    const auto response = refused.Receive();
    // Far above the limit, connections end without a word.
    if (response.status == 0 && i > 0) continue;
    EXPECT_EQ(response.status, 503);
    EXPECT_NE(response.head.find("Retry-After: 1\r\n"), std::string::npos);
    EXPECT_EQ(refused.ReceiveAll(), "");
  }
  EXPECT_EQ(run.stats().refused_connections, 200);
  for (RawClient& client : open) {
    client.Get("/");
    EXPECT_EQ(client.Receive().status, 200);
  }
  open.pop_back();
  run.WaitFor([](const HttpServerStats& stats) { return stats.connections == 1; });
  ExpectAnswer(RawClient::Tcp(run.port()));
}

// No descriptors are left for a while: the connections that wait are served afterwards.
TEST_F(HttpSockets, NoDescriptorsLeft) {
  HttpServerRun run;
  rlimit before = {};
  ::getrlimit(RLIMIT_NOFILE, &before);
  RawClient client = RawClient::Tcp(run.port());
  client.Get("/");
  EXPECT_EQ(client.Receive().status, 200);
  const int next = ::dup(0);
  ::close(next);
  const rlimit few = {static_cast<rlim_t>(next) + 1, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  RawClient waiting = RawClient::Tcp(run.port());  // takes the last one
  ASSERT_TRUE(waiting.connected());
  for (int i = 0; i < 5; ++i) {
    client.Get("/");  // open connections are served meanwhile
    EXPECT_EQ(client.Receive().status, 200);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  waiting.Get("/");
  EXPECT_EQ(waiting.Receive().status, 200);
  ExpectAnswer(RawClient::Tcp(run.port()));
}

TEST_F(HttpSockets, DrainsBeforeItEnds) {
  HttpServerOptions options = Unix();
  options.host = "127.0.0.1";
  HttpServerRun run(options);
  RawClient idle = RawClient::Tcp(run.port());
  idle.Get("/");
  EXPECT_EQ(idle.Receive().status, 200);
  RawClient running = RawClient::Tcp(run.port());
  running.Get("/hold");
  const auto exchange = run.handler.Held();
  run.Call([&] { run.server().StopAccepting(); });
  EXPECT_EQ(idle.ReceiveAll(), "");
  EXPECT_FALSE(RawClient::Tcp(run.port()).connected());
  EXPECT_NE(::access(path_.c_str(), F_OK), 0);
  run.Call([&] { exchange->Respond({.body = "last"}); });
  const auto response = running.Receive();
  EXPECT_EQ(response.body, "last");
  EXPECT_NE(response.head.find("Connection: close\r\n"), std::string::npos);
  EXPECT_EQ(running.ReceiveAll(), "");
  running.Close();
  run.WaitFor([](const HttpServerStats& stats) { return stats.connections == 0; });
}

TEST_F(HttpSockets, StopEndsAllConnections) {
  HttpServerRun run;
  RawClient client = RawClient::Tcp(run.port());
  client.Get("/hold");
  const auto exchange = run.handler.Held();
  run.Stop();
  EXPECT_EQ(client.ReceiveAll(), "");
  EXPECT_EQ(run.handler.gone(), 1);
}

TEST_F(HttpSockets, RepeatsAndKeepsTheOrderOfPosts) {
  HttpServerRun run;
  int repeated = 0;
  run.Call([&] {
    run.server().Repeat(std::chrono::milliseconds(1), [&] {
      if (++repeated == 1) throw std::bad_alloc();  // the next ones come all the same
    });
  });
  std::vector<int> order;
  for (int i = 0; i < 1000; ++i) run.server().Post([&order, i] { order.push_back(i); });
  run.Call([] {});
  ASSERT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  for (int i = 0, seen = 0; seen < 3; ++i) {
    ASSERT_LT(i, 6000);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    run.Call([&] { seen = repeated; });
  }
}

// H27: every write into a connection that has ended would raise SIGPIPE, and signals cut waits
// short.
TEST_F(HttpSockets, Signals) {
  TestHandler handler;
  HttpServerOptions options;
  options.port = 0;
  auto server = HttpServer::Listen(options, &handler).value();
  int seen = 0;
  server->OnSignal({SIGUSR1, SIGUSR2}, [&](int signal) {
    ++seen;
    if (signal == SIGUSR2) server->Stop();
  });
  std::thread thread([&] { server->Run(); });
  RawClient client = RawClient::Tcp(server->port());
  for (int i = 0; i < 200; ++i) {
    ::kill(::getpid(), SIGUSR1);
    client.Get("/");
    ASSERT_EQ(client.Receive().status, 200);
    RawClient leaving = RawClient::Tcp(server->port());
    leaving.Get("/large");
    leaving.Reset();
  }
  ::kill(::getpid(), SIGUSR2);
  thread.join();
  EXPECT_GT(seen, 1);
}

}  // namespace
}  // namespace latte::sockets_test

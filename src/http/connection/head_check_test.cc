#include "src/http/connection/head_check.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace latte::head_check_test {
namespace {

struct Head {
  HttpRequest request;
  BodyFraming framing;
  int status = 200;  // of a refusal
  std::string message;
  size_t end = 0;  // bytes of the head
};

// Reads a head that arrives in pieces of `piece` bytes.
Head Read(std::string_view bytes, const HeadLimits& limits = {}, size_t piece = 1 << 20) {
  Head out;
  for (size_t seen = 0; seen < bytes.size() && out.end == 0;) {
    const size_t before = seen;
    seen = std::min(seen + piece, bytes.size());
    const HeadScan scan = ScanHead(bytes.substr(0, seen), before, limits);
    if (scan.error) return {.status = scan.error->status, .message = scan.error->message};
    out.end = scan.end;
  }
  if (out.end == 0) return {.status = 0, .message = "more bytes are needed"};
  if (const auto error = ReadHead(bytes.substr(0, out.end), limits, &out.request, &out.framing)) {
    out.status = error->status;
    out.message = error->message;
  }
  return out;
}

// A request with these fields, which may end lines as they like.
std::string Get(const std::string& fields) { return "GET / HTTP/1.1\r\n" + fields + "\r\n"; }
std::string Post(const std::string& fields) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

TEST(HttpHead, ReadsARequest) {
  const Head head = Read(
      "POST /v1/chat%2F?a=b&c=? HTTP/1.1\r\nhOsT: localhost:8000\r\nX-Empty:\r\n"
      "X-Text: \t a \tb\xc3\xa9 \t\r\nContent-Length: 12\r\n\r\nbody");
  ASSERT_EQ(head.status, 200) << head.message;
  EXPECT_EQ(head.request.method, "POST");
  EXPECT_EQ(head.request.path, "/v1/chat%2F");
  EXPECT_EQ(head.request.query, "a=b&c=?");
  EXPECT_EQ(head.request.fields.Find("host"), "localhost:8000");
  EXPECT_TRUE(head.request.fields.Has("x-empty"));
  EXPECT_EQ(head.request.fields.Find("X-TEXT"), "a \tb\xc3\xa9");
  EXPECT_EQ(head.framing.length, 12u);
  EXPECT_FALSE(head.framing.chunked);
  EXPECT_TRUE(head.framing.keep_alive);
}

struct Case {
  std::string head;
  int status;
};

void Expect(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Head whole = Read(c.head);
    EXPECT_EQ(whole.status, c.status) << c.head.substr(0, 200) << "\n" << whole.message;
    EXPECT_EQ(Read(c.head, {}, 1).status, c.status) << "byte by byte: " << c.head.substr(0, 200);
  }
}

// H04, H05: requests of which two readers see different ends.
TEST(HttpHead, LengthsThatReadersUnderstandDifferently) {
  Expect({
      {Post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), 400},
      {Post("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"), 400},
      {Post("Content-Length: 3\r\nContent-Length: 3\r\n"), 400},
      {Post("Content-Length: 3\r\ncontent-length: 4\r\n"), 400},
      {Post("Content-Length: 3, 3\r\n"), 400},
      {Post("Content-Length: -1\r\n"), 400},
      {Post("Content-Length: +1\r\n"), 400},
      {Post("Content-Length: 1e3\r\n"), 400},
      {Post("Content-Length: 0x10\r\n"), 400},
      {Post("Content-Length: 1 0\r\n"), 400},
      {Post("Content-Length:\r\n"), 400},
      {Post("Transfer-Encoding: gzip, chunked\r\n"), 501},
      {Post("Transfer-Encoding: chunked, chunked\r\n"), 501},
      {Post("Transfer-Encoding: identity\r\n"), 501},
      {Post("Transfer-Encoding:\r\n"), 501},
      {Post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 501},
      {Post("Transfer-Encoding\x0b: chunked\r\n"), 400},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {Post("Content-Length: 0\r\n"), 200},
      {Post("Transfer-Encoding: Chunked\r\n"), 200},
      {Post(""), 200},
  });
  // 2^64 is a number, of a body that is too large.
  EXPECT_EQ(Read(Post("Content-Length: 18446744073709551616\r\n")).framing.length, UINT64_MAX);
}

// H09.
TEST(HttpHead, LinesThatReadersUnderstandDifferently) {
  Expect({
      {"GET / HTTP/1.1\nHost: a\n\n", 400},
      {Get("Host: a\nX: b\r\n"), 400},
      {Get("Host: a\rX: b\r\n"), 400},
      {Get("Host: a\r\n more\r\n"), 400},
      {Get("Host: a\r\n\tmore\r\n"), 400},
      {Get("Host : a\r\n"), 400},
      {Get("Host: a\r\n: b\r\n"), 400},
      {Get("Host: a\r\nno colon\r\n"), 400},
      {Get("Host: a\r\nX Y: b\r\n"), 400},
      {Get(std::string("Host: a\r\nX: a\0b\r\n", 17)), 400},
      {Get("Host: a\r\nX: a\x7f\r\n"), 400},
      {Get("Host: a\r\nX: a\x01\r\n"), 400},
      {Get("Host: a\r\nX\xc3\xa9: a\r\n"), 400},
  });
}

// H10, H11, H12.
TEST(HttpHead, RequestLines) {
  const std::string end = "\r\nHost: a\r\n\r\n";
  Expect({
      {"GET /" + end, 400},
      {"GET" + end, 400},
      {"GET / HTTP/2.0" + end, 505},
      {"GET / HTTP/1.2" + end, 505},
      {"GET / http/1.1" + end, 400},
      {"GET / HTTP/1.1 " + end, 400},
      {"GET  / HTTP/1.1" + end, 400},
      {"GET / x HTTP/1.1" + end, 400},
      {" GET / HTTP/1.1" + end, 400},
      {"G(T / HTTP/1.1" + end, 400},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {std::string("\x16\x03\x01\x02", 4), 400},
      {"{\"json\": 1}", 400},
      {"GET a HTTP/1.1" + end, 400},
      {"GET * HTTP/1.1" + end, 400},
      {"OPTIONS * HTTP/1.1" + end, 200},
      {"CONNECT a:80 HTTP/1.1" + end, 400},
      {"GET ftp://a/ HTTP/1.1" + end, 400},
      {"GET /a#b HTTP/1.1" + end, 400},
      {"GET /\x01 HTTP/1.1" + end, 400},
      {"GET /\xc3\xa9 HTTP/1.1" + end, 400},
      {"GET /" + std::string(9000, 'a') + " HTTP/1.1" + end, 414},
      {"GET /" + std::string(100'000, 'a') + " HTTP/1.1" + end, 414},
      {"TRACE / HTTP/1.1" + end, 200},
      {"GET /../%2e%2e/%00 HTTP/1.1" + end, 200},
  });
  EXPECT_EQ(Read("GET /../%2e%2e/%00 HTTP/1.1" + end).request.path, "/../%2e%2e/%00");
}

TEST(HttpHead, TargetsWithAHost) {
  const auto target = [](const std::string& text) {
    const Head head = Read("GET " + text + " HTTP/1.1\r\nHost: a\r\n\r\n");
    return std::to_string(head.status) + " " + head.request.path + " " + head.request.query;
  };
  EXPECT_EQ(target("http://b/c?d"), "200 /c d");
  EXPECT_EQ(target("HTTPS://b:1/c"), "200 /c ");
  EXPECT_EQ(target("http://b"), "200 / ");
  EXPECT_EQ(target("http://b?/c").substr(0, 3), "400");
}

// H24.
TEST(HttpHead, Host) {
  Expect({
      {Get(""), 400},
      {Get("Host: a\r\nHost: a\r\n"), 400},
      {Get("Host: a b\r\n"), 400},
      {Get("Host: a/b\r\n"), 400},
      {Get("Host: a@b\r\n"), 400},
      {Get("Host: a, b\r\n"), 400},
      {Get("Host:\r\n"), 200},
      {Get("Host: [::1]:8000\r\n"), 200},
      {"GET / HTTP/1.0\r\n\r\n", 200},
  });
}

// H13, H14.
TEST(HttpHead, WhatARequestExpects) {
  Expect({
      {Post("Content-Encoding: gzip\r\n"), 415},
      {Post("Content-Encoding: identity\r\nContent-Encoding: gzip\r\n"), 415},
      {Post("Content-Encoding: identity\r\n"), 200},
      {Post("Expect: 200-ok\r\n"), 417},
  });
  EXPECT_TRUE(Read(Post("Expect: 100-Continue\r\n")).framing.expects_continue);
  EXPECT_FALSE(Read(Post("")).framing.expects_continue);
  EXPECT_FALSE(Read("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").framing.expects_continue);
}

TEST(HttpHead, WhetherTheConnectionStays) {
  const auto stays = [](const std::string& text) { return Read(text).framing.keep_alive; };
  EXPECT_TRUE(stays(Get("Host: a\r\n")));
  EXPECT_FALSE(stays(Get("Host: a\r\nConnection: Close\r\n")));
  EXPECT_FALSE(stays(Get("Host: a\r\nConnection: x\r\nConnection: keep-alive, close\r\n")));
  EXPECT_FALSE(stays("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(stays("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

// H08.
TEST(HttpHead, Limits) {
  const HeadLimits limits = {.bytes = 200, .fields = 3, .target = 50};
  const auto status = [&](const std::string& text) {
    const int whole = Read(text, limits).status;
    EXPECT_EQ(Read(text, limits, 1).status, whole) << text;
    return whole;
  };
  EXPECT_EQ(status(Get("Host: a\r\nA: 1\r\nB: 2\r\n")), 200);
  EXPECT_EQ(status(Get("Host: a\r\nA: 1\r\nB: 2\r\nC: 3\r\n")), 431);
  const size_t fixed = Get("Host: a\r\nX: \r\n").size();
  EXPECT_EQ(status(Get("Host: a\r\nX: " + std::string(200 - fixed, 'x') + "\r\n")), 200);
  EXPECT_EQ(status(Get("Host: a\r\nX: " + std::string(201 - fixed, 'x') + "\r\n")), 431);
  EXPECT_EQ(status(Get("Host: a\r\nX: " + std::string(1 << 16, 'x'))), 431);
  EXPECT_EQ(status("GET /" + std::string(1 << 16, 'x')), 414);
}

// H25: what a head means does not depend on the packets that it arrives in.
TEST(HttpHead, CutAnywhere) {
  const std::string text =
      "POST /a?b HTTP/1.1\r\nHost: a\r\nX: 1\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    const Head head = Read(text, {}, piece);
    ASSERT_EQ(head.status, 200) << piece;
    EXPECT_EQ(head.end, text.find("abc")) << piece;
    EXPECT_EQ(head.request.fields.list().size(), 3u);
  }
}

}  // namespace
}  // namespace latte::head_check_test

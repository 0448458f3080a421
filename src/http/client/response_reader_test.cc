#include "src/http/client/response_reader.h"

#include <gtest/gtest.h>

namespace latte::response_reader_test {
namespace {

constexpr ResponseLimits kLimits = {.max_head_bytes = 200, .max_body_bytes = 1000};

struct Read {
  Status status;
  bool done = false;
  bool has_rest = false;
  int heads = 0;
  std::string body;
  size_t taken = 0;  // bytes until the end or an error
};

// Reads `text` in pieces of `piece` bytes.
Read ReadPieces(const std::string& text, size_t piece, bool no_body = false) {
  Read out;
  ResponseReader reader(kLimits, no_body,
                        {.on_head = [&](const HttpResponse&) { ++out.heads; },
                         .on_body = [&](std::string_view bytes) { out.body += bytes; }});
  for (; out.taken < text.size() && out.status && !reader.done(); out.taken += piece)
    out.status = reader.Add(std::string_view(text).substr(out.taken, piece));
  out.done = reader.done();
  out.has_rest = reader.has_rest();
  return out;
}

std::string Repeated(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

const std::string kChunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

// Found in a build with Boost's assertions: a body of the last chunk alone, cut anywhere.
TEST(ResponseReader, AnEmptyChunkedBody) {
  for (const size_t piece : {1, 2, 3, 100}) {
    const Read read = ReadPieces(kChunked + "0\r\n\r\n", piece);
    EXPECT_TRUE(read.status && read.done) << piece;
  }
}

TEST(ResponseReader, SmallChunks) {
  for (const size_t piece : {1, 7, 100'000}) {
    const Read read = ReadPieces(
        kChunked + Repeated("1;x=\"y\"\r\na\r\n", 500) + "0\r\nTrailer: x\r\n\r\n", piece);
    ASSERT_TRUE(read.status) << read.status.error().message;
    EXPECT_TRUE(read.done);
    EXPECT_EQ(read.body, std::string(500, 'a'));
  }
}

// Nothing grows without end, whatever the server repeats.
TEST(ResponseReader, WhatNeverEndsIsBounded) {
  const std::string cases[] = {
      "HTTP/1.1 200 OK\r\n" + Repeated("a: b\r\n", 10'000),
      "HTTP/1.1 200 OK\r\na: " + std::string(60'000, 'b'),
      "HTTP/1.1 200 " + std::string(60'000, 'O'),
      Repeated("HTTP/1.1 100 Continue\r\n\r\n", 10'000),
      kChunked + "5;" + std::string(60'000, 'x'),
      kChunked + "0\r\n" + Repeated("a: b\r\n", 10'000),
  };
  for (const std::string& text : cases)
    for (const size_t piece : {1, 64, 1000}) {
      const Read read = ReadPieces(text, piece);
      ASSERT_FALSE(read.status) << text.substr(0, 60);
      EXPECT_NE(read.status.error().message.find("longer than 200 bytes"), std::string::npos)
          << read.status.error().message;
      EXPECT_LE(read.taken, 400 + piece) << text.substr(0, 60);
    }
}

TEST(ResponseReader, AHeadAtTheLimit) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n";
  for (const size_t piece : {1, 1000}) {
    const std::string fill = "X: " + std::string(200 - head.size() - 7, 'x') + "\r\n";
    EXPECT_EQ(ReadPieces(head + fill + "\r\nok", piece).body, "ok");
    EXPECT_FALSE(ReadPieces(head + "x" + fill + "\r\nok", piece).status);
  }
}

TEST(ResponseReader, AnAnswerToConnectHasNoBody) {
  const Read read = ReadPieces("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 1, true);
  EXPECT_TRUE(read.done);
  EXPECT_FALSE(read.has_rest);
  EXPECT_TRUE(ReadPieces("HTTP/1.1 200 OK\r\n\r\nhello", 100, true).has_rest);
}

}  // namespace
}  // namespace latte::response_reader_test

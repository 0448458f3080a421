#include "src/http/connection/body_reader.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace latte::body_reader_test {
namespace {

constexpr uint64_t kMost = 100;

struct Body {
  std::string text;
  std::string rest;  // of the next request
  bool done = false;
  int status = 200;

  bool operator==(const Body&) const = default;
};

Body Read(const BodyFraming& framing, std::string_view bytes, size_t piece) {
  BodyReader reader(framing, kMost);
  std::string waiting;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    waiting += bytes.substr(at, piece);
    waiting.erase(0, reader.Take(waiting));
    if (reader.error()) return {.status = reader.error()->status};
  }
  if (reader.error()) return {.status = reader.error()->status};
  return {.text = reader.body(), .rest = waiting, .done = reader.done()};
}

// The body in pieces of any size is the same.
Body Read(const BodyFraming& framing, std::string_view bytes) {
  const Body whole = Read(framing, bytes, std::max<size_t>(bytes.size(), 1));
  for (const size_t piece : {1, 2, 3, 7, 64})
    EXPECT_EQ(Read(framing, bytes, piece), whole) << bytes.substr(0, 200) << " by " << piece;
  return whole;
}
Body Chunked(std::string_view bytes) { return Read({.chunked = true}, bytes); }
Body Length(uint64_t length, std::string_view bytes) { return Read({.length = length}, bytes); }

TEST(HttpBody, KnownLength) {
  EXPECT_EQ(Length(0, ""), (Body{.done = true}));
  EXPECT_EQ(Length(3, "abcGET"), (Body{"abc", "GET", true}));
  EXPECT_EQ(Length(3, "ab"), (Body{.text = "ab"}));
  EXPECT_TRUE(Length(kMost, std::string(kMost, 'x')).done);
  EXPECT_EQ(Length(kMost + 1, "").status, 413);
  EXPECT_EQ(Length(UINT64_MAX, "").status, 413);
}

// The server counts the memory that a body takes: no more than its bytes need.
TEST(HttpBody, MemoryGrowsWithTheBytes) {
  constexpr size_t kBytes = 3'000'000;
  const std::string piece(4096, 'x');
  for (const bool chunked : {false, true}) {
    BodyReader reader({.chunked = chunked, .length = kBytes}, uint64_t{1} << 40);
    EXPECT_LE(reader.body().capacity(), 4096U);  // a promise takes little
    if (chunked) reader.Take("2DC6C0\r\n");
    for (size_t sent = 0; sent < kBytes; sent += piece.size()) {
      reader.Take(std::string_view(piece).substr(0, kBytes - sent));
      const size_t size = reader.body().size();
      ASSERT_LE(reader.body().capacity(), std::max<size_t>(4096, 2 * size + 2 * piece.size()));
    }
    EXPECT_EQ(reader.body().size(), kBytes);
    if (!chunked) {
      EXPECT_EQ(reader.body().capacity(), kBytes);
    }
  }
}

TEST(HttpBody, Chunks) {
  EXPECT_EQ(Chunked("0\r\n\r\nGET"), (Body{"", "GET", true}));
  EXPECT_EQ(Chunked("3\r\nabc\r\n0A;x=\"y\"\r\n0123456789\r\n000\r\nTrailer: x\r\n\r\nGET"),
            (Body{"abc0123456789", "GET", true}));
  EXPECT_EQ(Chunked("3\r\nabc\r\n"), (Body{.text = "abc"}));
}

// H06, H07.
TEST(HttpBody, ChunksThatAreNone) {
  for (const std::string_view size :
       {"-2", "+2", "0x5", "", " 5", "5 ", "g", "5\rx", "5;a\rb", "-0"})
    EXPECT_EQ(Chunked(std::string(size) + "\r\nabcde\r\n0\r\n\r\n").status, 400) << size;
  EXPECT_EQ(Chunked("3\nabc\r\n0\r\n\r\n").status, 400);
  EXPECT_EQ(Chunked("3\r\nabcd\r\n0\r\n\r\n").status, 400);
  EXPECT_EQ(Chunked("3\r\nabc\n0\r\n\r\n").status, 400);
  EXPECT_EQ(Chunked("5;" + std::string(1 << 20, 'x')).status, 400);
  EXPECT_EQ(Chunked("0\r\n" + std::string(1 << 20, 'x')).status, 400);
  std::string trailers = "0\r\n";
  for (int i = 0; i < 2000; ++i) trailers += "X: y\r\n";
  EXPECT_EQ(Chunked(trailers).status, 400);
}

// The limit holds before the bytes of a chunk arrive.
TEST(HttpBody, ChunksThatAreTooLarge) {
  EXPECT_EQ(Chunked("64\r\n").status, 200);
  EXPECT_EQ(Chunked("65\r\n").status, 413);
  EXPECT_EQ(Chunked("FFFFFFFFFFFFFFFF\r\n").status, 413);
  EXPECT_EQ(Chunked("FFFFFFFFFFFFFFFFF\r\n").status, 413);
  EXPECT_EQ(Chunked("32\r\n" + std::string(50, 'x') + "\r\n33\r\n").status, 413);
}

}  // namespace
}  // namespace latte::body_reader_test

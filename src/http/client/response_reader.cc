#include "src/http/client/response_reader.h"

#include <algorithm>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <fmt/format.h>

namespace latte {

namespace {

namespace http = boost::beast::http;
using BeastText = boost::beast::string_view;
using BeastError = boost::beast::error_code;

std::string_view View(BeastText text) { return {text.data(), text.size()}; }

tl::unexpected<Error> Malformed(const ResponseLimits& limits, const BeastError& error) {
  if (error == http::error::header_limit)
    return Corrupt(fmt::format("the head of the response, or of a chunk, is longer than {} bytes",
                               limits.max_head_bytes));
  if (error == http::error::body_limit)
    return Corrupt(
        fmt::format("the body of the response is longer than {} bytes", limits.max_body_bytes));
  if (error == http::error::partial_message || error == http::error::end_of_stream)
    return Corrupt("the connection ended before the response was complete");
  return Corrupt(
      fmt::format("expected a response of HTTP/1.1, found other bytes: {}", error.message()));
}

}  // namespace

class ResponseReader::Parser final : public http::basic_parser<false> {
 public:
  explicit Parser(const Events* events) : events_(events) {}

  bool is_interim() const { return head_.status >= 100 && head_.status < 200; }
  // The next bytes are the size of a chunk.
  bool at_chunk_size() const { return is_header_done() && chunked() && chunk_left_ == 0; }

 private:
  void on_request_impl(http::verb, BeastText, BeastText, int, BeastError&) override {}
  void on_response_impl(int code, BeastText, int, BeastError&) override {
    head_.status = code;
    head_.content_type.clear();
  }
  void on_field_impl(http::field name, BeastText text, BeastText value, BeastError&) override {
    if (name == http::field::content_type) head_.content_type = View(value);
    head_.fields.Add(std::string(View(text)), std::string(View(value)));
  }
  void on_header_impl(BeastError&) override {
    if (!is_interim()) events_->on_head(head_);
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, BeastError&) override {}
  std::size_t on_body_impl(BeastText piece, BeastError&) override {
    events_->on_body(View(piece));
    return piece.size();
  }
  void on_chunk_header_impl(std::uint64_t size, BeastText, BeastError&) override {
    chunk_left_ = size;
  }
  std::size_t on_chunk_body_impl(std::uint64_t left, BeastText piece, BeastError&) override {
    chunk_left_ = left - piece.size();
    if (!piece.empty()) events_->on_body(View(piece));
    return piece.size();
  }
  void on_finish_impl(BeastError&) override {}

  const Events* events_;
  HttpResponse head_;
  std::uint64_t chunk_left_ = 0;
};

ResponseReader::ResponseReader(const ResponseLimits& limits, bool no_body, Events events)
    : limits_(limits), no_body_(no_body), events_(std::move(events)) {
  StartParser();
}

ResponseReader::~ResponseReader() = default;

void ResponseReader::StartParser() {
  parser_ = std::make_unique<Parser>(&events_);
  parser_->skip(no_body_);
  parser_->header_limit(static_cast<std::uint32_t>(limits_.max_head_bytes));
  parser_->body_limit(static_cast<std::uint64_t>(limits_.max_body_bytes));
}

// Beast's parser takes for granted that so many bytes of a last chunk have come, "0\r\n\r\n", once
// it has seen its size.
constexpr size_t kLeastLastChunk = 5;

// Without `eager`, the parser stops behind the head, so that its bytes can be counted.
Status ResponseReader::Add(std::string_view bytes) {
  begun_ = begun_ || !bytes.empty();
  std::string joined;
  if (!waiting_.empty()) {
    joined = std::exchange(waiting_, {});
    joined += bytes;
    bytes = joined;
  }
  const auto most = static_cast<size_t>(limits_.max_head_bytes);
  while (!bytes.empty() && !parser_->is_done()) {
    if (parser_->at_chunk_size() && bytes.front() == '0' && bytes.size() < kLeastLastChunk) break;
    const bool in_head = !parser_->is_header_done();
    const std::string_view given = in_head ? bytes.substr(0, most - head_bytes_) : bytes;
    BeastError error;
    const size_t used = parser_->put(boost::asio::buffer(given), error);
    if (in_head) head_bytes_ += used;
    bytes.remove_prefix(used);
    const bool needs_more = error == http::error::need_more;
    if (error && !needs_more) return Malformed(limits_, error);
    if (parser_->is_done() && parser_->is_interim()) {
      StartParser();
    } else if (needs_more || used == 0) {
      break;
    }
  }
  const bool in_head = !parser_->is_header_done();
  if (!parser_->is_done() && bytes.size() + (in_head ? head_bytes_ : 0) >= most)
    return Malformed(limits_, http::error::header_limit);
  if (bytes.size() == joined.size()) {
    waiting_ = std::move(joined);
  } else {
    waiting_ = bytes;
  }
  return {};
}

Status ResponseReader::End() {
  BeastError error;
  if (!parser_->got_some()) return Malformed(limits_, http::error::partial_message);
  parser_->put_eof(error);
  if (error) return Malformed(limits_, error);
  return {};
}

bool ResponseReader::done() const { return parser_->is_done() && !parser_->is_interim(); }

bool ResponseReader::keep_alive() const { return parser_->keep_alive() && waiting_.empty(); }

bool ResponseReader::ends_with_connection() const {
  return parser_->is_header_done() && parser_->need_eof();
}

}  // namespace latte

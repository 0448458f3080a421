#include "src/http/connection/body_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace latte {
namespace {

constexpr size_t kMostLineBytes = 1024;      // a chunk's size with its extensions
constexpr size_t kMostTrailerBytes = 8192;   // trailers are read and ignored
constexpr uint64_t kFirstReserve = 1 << 12;  // a length is only a promise

}  // namespace

BodyReader::BodyReader(const BodyFraming& framing, uint64_t max_bytes)
    : max_bytes_(max_bytes), most_bytes_(framing.chunked ? max_bytes : framing.length) {
  if (framing.chunked) {
    step_ = Step::kChunkLine;
    return;
  }
  left_ = framing.length;
  if (left_ == 0) step_ = Step::kDone;
  if (left_ > max_bytes) {
    Fail(413, fmt::format("the body is larger than {} bytes", max_bytes));
    return;
  }
  body_.reserve(static_cast<size_t>(std::min(left_, kFirstReserve)));
}

void BodyReader::Fail(int status, std::string message) {
  error_ = HeadError{status, std::move(message)};
}

size_t BodyReader::Take(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && !done() && !error_) {
    const std::string_view rest = bytes.substr(taken);
    const bool is_data = step_ == Step::kLength || step_ == Step::kChunkData;
    taken += is_data ? TakeData(rest) : TakeLine(rest);
  }
  return taken;
}

size_t BodyReader::TakeData(std::string_view bytes) {
  const auto count = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size()));
  if (body_.size() + count > body_.capacity()) Grow(body_.size() + count);
  body_.append(bytes.substr(0, count));
  left_ -= count;
  if (left_ == 0) step_ = step_ == Step::kLength ? Step::kDone : Step::kChunkEnd;
  return count;
}

// Twice as much as before, but never more than the body can have: the server counts the capacity.
void BodyReader::Grow(size_t bytes) {
  std::string grown;
  grown.reserve(std::min(std::max(bytes, 2 * body_.capacity()), static_cast<size_t>(most_bytes_)));
  grown.append(body_);
  body_.swap(grown);
}

size_t BodyReader::TakeLine(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  const size_t count = end == std::string_view::npos ? bytes.size() : end + 1;
  const size_t most = step_ == Step::kTrailer ? kMostTrailerBytes : kMostLineBytes;
  if (line_.size() + count > most) {
    Fail(400, "a chunk's size or a trailer is too long");
    return 0;
  }
  line_.append(bytes.substr(0, count));
  if (line_.ends_with('\n')) EndLine();
  return count;
}

void BodyReader::EndLine() {
  const std::string line = std::exchange(line_, {});
  if (!line.ends_with("\r\n")) return Fail(400, "a line of the chunked body ends without CR");
  const std::string_view text = std::string_view(line).substr(0, line.size() - 2);
  if (text.find('\r') != std::string_view::npos)
    return Fail(400, "a line of the chunked body has a CR inside");
  if (step_ == Step::kChunkLine) return ReadChunkLine(text);
  if (step_ == Step::kChunkEnd) {
    if (!text.empty()) return Fail(400, "a chunk is longer than its size");
    step_ = Step::kChunkLine;
    return;
  }
  trailer_bytes_ += line.size();
  if (text.empty()) {
    step_ = Step::kDone;
  } else if (trailer_bytes_ > kMostTrailerBytes) {
    Fail(400, "the trailers are too long");
  }
}

void BodyReader::ReadChunkLine(std::string_view line) {
  const std::string_view digits = line.substr(0, line.find(';'));
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), left_, 16);
  // from_chars accepts "-2".
  const bool is_number =
      !digits.empty() && digits.front() != '-' && end == digits.data() + digits.size();
  if (is_number && error == std::errc() && left_ <= max_bytes_ - body_.size()) {
    step_ = left_ == 0 ? Step::kTrailer : Step::kChunkData;
    return;
  }
  if (is_number && (error == std::errc() || error == std::errc::result_out_of_range))
    return Fail(413, fmt::format("the body is larger than {} bytes", max_bytes_));
  Fail(400, "expected the size of a chunk in hexadecimal digits");
}

}  // namespace latte

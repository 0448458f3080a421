// The body of a request as it arrives: a known length, or chunks (RFC 9112 §7.1). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/http/connection/head_check.h"

namespace latte {

class BodyReader {
 public:
  BodyReader(const BodyFraming& framing, uint64_t max_bytes);

  // Takes bytes from the front of `bytes`; returns how many. The rest belongs to the next request.
  size_t Take(std::string_view bytes);

  bool done() const { return step_ == Step::kDone; }
  // 413 for a body that is too large, 400 for chunks that are malformed. Nothing is taken any more.
  const std::optional<HeadError>& error() const { return error_; }
  std::string& body() { return body_; }

 private:
  enum class Step { kLength, kChunkLine, kChunkData, kChunkEnd, kTrailer, kDone };

  size_t TakeData(std::string_view bytes);
  void Grow(size_t bytes);
  size_t TakeLine(std::string_view bytes);
  void EndLine();
  void ReadChunkLine(std::string_view line);
  void Fail(int status, std::string message);

  const uint64_t max_bytes_;
  const uint64_t most_bytes_;  // that this body can have: its length, if that is known
  Step step_ = Step::kLength;
  uint64_t left_ = 0;  // bytes of the length or of the chunk
  std::string line_;   // of a chunk's size, of the end of a chunk, or of a trailer
  size_t trailer_bytes_ = 0;
  std::string body_;
  std::optional<HeadError> error_;
};

}  // namespace latte

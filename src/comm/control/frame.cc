#include "src/comm/control/frame.h"

#include <utility>

#include <fmt/format.h>

#include "src/base/check.h"

namespace latte {
namespace {

constexpr std::string_view kMagic = "LTC1";

void AppendNumber(uint64_t value, size_t bytes, std::string& out) {
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

struct Head {
  uint32_t type;
  uint32_t length;
};

// bytes: [kFrameHeadBytes].
Result<Head> ReadHead(std::string_view bytes, size_t most_payload) {
  FieldReader fields(bytes.substr(kMagic.size()));
  if (!bytes.starts_with(kMagic)) return Corrupt("control connection: no frame of Latte");
  const Head head{fields.U32(), fields.U32()};
  if (head.type == 0 || head.type > kLastFrameType) {
    return Corrupt(fmt::format("control connection: frame of type {}, the types are 1 to {}",
                               head.type, kLastFrameType));
  }
  if (head.length > most_payload) {
    return Corrupt(fmt::format("control connection: frame of {} bytes, at most {} are allowed",
                               head.length, most_payload));
  }
  return head;
}

}  // namespace

std::string FrameBytes(FrameType type, std::string_view payload) {
  LATTE_CHECK(payload.size() < uint64_t{1} << 32, "{} bytes", payload.size());
  FieldWriter head;
  head.Bytes(kMagic);
  head.U32(static_cast<uint32_t>(type));
  head.U32(static_cast<uint32_t>(payload.size()));
  return head.bytes() + std::string(payload);
}

Result<std::vector<Frame>> FrameReader::Take(std::string_view bytes) {
  waiting_ += bytes;
  std::vector<Frame> frames;
  size_t begin = 0;
  while (waiting_.size() - begin >= kFrameHeadBytes) {
    const std::string_view rest = std::string_view(waiting_).substr(begin);
    LATTE_ASSIGN_OR_RETURN(const Head head,
                           ReadHead(rest.substr(0, kFrameHeadBytes), most_payload_));
    if (rest.size() - kFrameHeadBytes < head.length) break;
    frames.push_back({static_cast<FrameType>(head.type),
                      std::string(rest.substr(kFrameHeadBytes, head.length))});
    begin += kFrameHeadBytes + head.length;
  }
  waiting_.erase(0, begin);
  return frames;
}

void FieldWriter::U32(uint32_t value) { AppendNumber(value, 4, out_); }
void FieldWriter::U64(uint64_t value) { AppendNumber(value, 8, out_); }

std::string FieldReader::Bytes(size_t count) {
  if (rest_.size() < count) {
    missing_ = true;
    rest_ = {};
    return {};
  }
  std::string bytes(rest_.substr(0, count));
  rest_.remove_prefix(count);
  return bytes;
}

uint64_t FieldReader::Number(size_t bytes) {
  uint64_t value = 0;
  const std::string field = Bytes(bytes);
  for (size_t i = 0; i < field.size(); ++i) {
    value |= uint64_t{static_cast<unsigned char>(field[i])} << (8 * i);
  }
  return value;
}

}  // namespace latte

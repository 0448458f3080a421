// Reads the numbers and strings of a GGUF file one after another, and never past the end of the
// bytes that it is given.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "latte/status.h"

namespace latte {

class GgufCursor {
 public:
  // Advice about a file that is not as it was.
  static constexpr std::string_view kDamaged = "the file may be damaged: download it again";
  static constexpr std::string_view kCutShort = "the file may be cut short: download it again";

  // `path` is used in messages and must outlive the cursor.
  GgufCursor(std::span<const std::byte> bytes, const std::string& path)
      : bytes_(bytes), path_(path) {}

  int64_t position() const { return static_cast<int64_t>(position_); }
  int64_t left() const { return static_cast<int64_t>(bytes_.size() - position_); }
  const std::string& path() const { return path_; }

  // The part of the file that is read from here on, for messages: "tensor 'output.weight'".
  void SetPart(std::string part) { part_ = std::move(part); }

  // The next `count` bytes. Errors: kCorrupt naming `what` and the place if the file ends before.
  [[nodiscard]] Result<std::span<const std::byte>> Bytes(uint64_t count, std::string_view what) {
    if (count > bytes_.size() - position_)
      return Bad(fmt::format("{} of {} bytes at byte {}", what, count, position_),
                 fmt::format("only {} more bytes", bytes_.size() - position_), kCutShort);
    const auto out = bytes_.subspan(position_, count);
    position_ += count;
    return out;
  }

  // The next number. Errors: as Bytes.
  template <class T>
  [[nodiscard]] Result<T> Number(std::string_view what) {
    static_assert(std::endian::native == std::endian::little);
    LATTE_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, Bytes(sizeof(T), what));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

  // The next string: its length and its bytes, which may be any. Errors: as Bytes.
  [[nodiscard]] Result<std::string_view> String(std::string_view what) {
    LATTE_ASSIGN_OR_RETURN(const uint64_t length, Number<uint64_t>("the length of a string"));
    LATTE_ASSIGN_OR_RETURN(const std::span<const std::byte> text, Bytes(length, what));
    return std::string_view(reinterpret_cast<const char*>(text.data()), text.size());
  }

  tl::unexpected<Error> Bad(std::string_view expected, std::string_view found,
                            std::string_view advice = kDamaged) const {
    return Corrupt(fmt::format("{}: {}{}expected {}, found {}; {}", path_, part_,
                               part_.empty() ? "" : ": ", expected, found, advice));
  }
  // An error of another function, with the place in front.
  tl::unexpected<Error> Bad(const Error& error) const {
    return Fail(error.code, fmt::format("{}: {}: {}", path_, part_, error.message));
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& path_;
  std::string part_;
  size_t position_ = 0;
};

}  // namespace latte

// The encoding of messages between the ranks of a group: little-endian int64, and lists of numbers
// after their length, padded to eight bytes. All ranks run one build on machines of one byte order.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latte {

static_assert(std::endian::native == std::endian::little);
inline constexpr size_t kWireUnit = sizeof(int64_t);

// Writes a message.
class WireWriter {
 public:
  void Int(int64_t value) { Add(&value, sizeof(value)); }
  template <class T>
  void List(std::span<const T> values) {
    Int(std::ssize(values));
    Add(values.data(), values.size_bytes());
  }
  void Text(std::string_view text) { List(std::span(text.data(), text.size())); }
  std::vector<std::byte> Take() { return std::move(out_); }

 private:
  void Add(const void* data, size_t bytes) {
    const auto* begin = static_cast<const std::byte*>(data);
    const size_t end = out_.size();
    out_.resize(end + (bytes + kWireUnit - 1) / kWireUnit * kWireUnit);
    std::copy_n(begin, bytes, out_.begin() + static_cast<std::ptrdiff_t>(end));
  }

  std::vector<std::byte> out_;
};

// Reads a message. After the first error, every value is zero and every list is empty.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> message) : message_(message) {}

  int64_t Int() {
    int64_t value = 0;
    const std::span<const std::byte> bytes = Next(kWireUnit);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), kWireUnit);
    return value;
  }
  template <class T>
  std::span<const T> List() {
    const int64_t count = Int();
    if (count < 0 || count > std::ssize(message_)) return Fail(), std::span<const T>();
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    const auto* const first = Next((bytes + kWireUnit - 1) / kWireUnit * kWireUnit).data();
    if (failed_) return {};
    return {reinterpret_cast<const T*>(first), static_cast<size_t>(count)};
  }
  std::string Text() {
    const std::span<const char> text = List<char>();
    return {text.begin(), text.end()};
  }
  void Fail() { failed_ = true; }
  bool good() const { return !failed_; }
  bool ok() const { return !failed_ && message_.empty(); }  // and read whole

 private:
  std::span<const std::byte> Next(size_t bytes) {
    if (failed_ || bytes > message_.size()) {
      failed_ = true;
      return {};
    }
    const std::span<const std::byte> out = message_.first(bytes);
    message_ = message_.subspan(bytes);
    return out;
  }

  std::span<const std::byte> message_;  // the rest
  bool failed_ = false;
};

}  // namespace latte

// Bytes that count in a total for exactly as long as their owner lives.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace latte {

// The owners of a total may end on any thread, also after the server.
using ByteTotal = std::shared_ptr<std::atomic<int64_t>>;

class CountedBytes {
 public:
  CountedBytes() = default;
  explicit CountedBytes(ByteTotal total) : total_(std::move(total)) {}
  ~CountedBytes() { Set(0); }
  // The moved object counts nothing afterwards, in the same total.
  CountedBytes(CountedBytes&& other) noexcept
      : total_(other.total_), bytes_(std::exchange(other.bytes_, 0)) {}
  CountedBytes& operator=(CountedBytes&&) = delete;

  void Set(int64_t bytes) {
    if (total_) total_->fetch_add(bytes - bytes_, std::memory_order_relaxed);
    bytes_ = bytes;
  }

 private:
  ByteTotal total_;  // null: they are not counted
  int64_t bytes_ = 0;
};

}  // namespace latte

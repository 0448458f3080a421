// The used rows of Runner::kept. Each holds a hidden state for later drafts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace latte {

class KeptRows {
 public:
  explicit KeptRows(int64_t rows) : users_(static_cast<size_t>(rows)) {
    for (int64_t row = rows; row > 0; --row) free_.push_back(static_cast<int32_t>(row - 1));
  }

  // A row with one user; −1 if none is left.
  int32_t Take() {
    if (free_.empty()) return -1;
    const int32_t row = free_.back();
    free_.pop_back();
    users_[static_cast<size_t>(row)] = 1;
    return row;
  }

  void Share(std::span<const int32_t> rows) {
    for (const int32_t row : rows) ++users_[static_cast<size_t>(row)];
  }

  // Negative ones are passed over.
  void Release(std::span<const int32_t> rows) {
    for (const int32_t row : rows)
      if (row >= 0 && --users_[static_cast<size_t>(row)] == 0) free_.push_back(row);
  }

  int64_t free() const { return std::ssize(free_); }

 private:
  std::vector<int32_t> users_;
  std::vector<int32_t> free_;
};

}  // namespace latte

#include "src/http/connection/unsent_bytes.h"

#include <algorithm>
#include <utility>

namespace latte {
namespace {

// A client that takes fewer in the timeout counts as stalled.
constexpr size_t kLeastProgress = 16 << 10;
// Memory that a connection keeps for its next answer.
constexpr size_t kMostKept = 16 << 10;
// Sent bytes that may stand before unsent ones until they are half of the text.
constexpr size_t kMostSentKept = 64 << 10;

}  // namespace

void UnsentBytes::Append(std::string_view bytes) {
  if (size() == 0) {
    waiting_since_ = last_progress_ = Clock::now();
    progress_ = 0;
  }
  appended_.append(bytes);
  count_.Set(static_cast<int64_t>(size()));
}

std::string_view UnsentBytes::Next() {
  if (sent_ == sending_.size()) {
    sending_.clear();
    // An idle connection must not hold the memory of a large answer.
    if (sending_.capacity() > kMostKept) sending_.shrink_to_fit();
    sent_ = 0;
    std::swap(sending_, appended_);
  }
  return std::string_view(sending_).substr(sent_);
}

void UnsentBytes::Sent(size_t bytes) {
  sent_ += bytes;
  count_.Set(static_cast<int64_t>(size()));
  progress_ += bytes;
  if (progress_ >= LeastProgress() || size() == 0) {
    progress_ = 0;
    last_progress_ = Clock::now();
  }
  // A long answer that is read slowly takes the memory of what is left of it, not of all of it.
  if (sent_ < kMostSentKept || sent_ < sending_.size() / 2) return;
  sending_ = sending_.substr(sent_);
  sent_ = 0;
}

// A client that is far behind must take more: a trickle must not keep a long answer.
size_t UnsentBytes::LeastProgress() const {
  return size() > most_ ? std::max(kLeastProgress, most_) : kLeastProgress;
}

}  // namespace latte

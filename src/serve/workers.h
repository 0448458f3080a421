// A few threads for work that is too long for the I/O thread: parsing, tokenising, templates.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace latte {

// Thread-safe. Work runs in the order in which it was posted; what has not begun when the object
// ends is dropped.
class Workers {
 public:
  // `most_waiting`: work that may wait for a thread.
  Workers(int threads, size_t most_waiting);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // False: too much waits already. `work` must not throw.
  [[nodiscard]] bool Post(std::function<void()> work);

  size_t waiting() const;

 private:
  void Loop();
  void Stop();

  const size_t most_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace latte

// The interface of the I/O thread for other threads. They may post work at any time, even after the
// end of the server. Includes Boost; for files of src/http only.
#pragma once

#include <functional>
#include <mutex>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace latte {

class IoThread {
 public:
  explicit IoThread(boost::asio::io_context* io) : io_(io) {}

  // Runs `work` on the I/O thread; forgets it if the server has ended. Thread-safe.
  void Post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (io_ != nullptr) boost::asio::post(*io_, std::move(work));
  }
  // The server ends. Thread-safe.
  void End() {
    const std::lock_guard lock(mutex_);
    io_ = nullptr;
  }

 private:
  std::mutex mutex_;
  boost::asio::io_context* io_;
};

}  // namespace latte

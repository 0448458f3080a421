// One line on standard error that is kept up to date: how far a long job is.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace latte {

// "written 1.50 of 31.41 GB". On a terminal at every whole percent, else at the end only.
class ByteProgress {
 public:
  explicit ByteProgress(std::string_view what) : what_(what) {}
  ~ByteProgress();  // what ended early leaves the line to what is said of it
  void Show(int64_t done, int64_t total);

 private:
  std::string_view what_;
  bool amid_line_ = false;
};

// What a user should know beside the result, a line each.
void ShowNotes(const std::vector<std::string>& notes);

// Says how many layers are done, from `after` seconds of its life on: short jobs stay silent.
class LayerProgress {
 public:
  explicit LayerProgress(std::string_view what, double after = 1.0);
  void operator()(int64_t done, int64_t layers) const;

 private:
  std::string_view what_;
  double after_;
  std::chrono::steady_clock::time_point start_;
};

// "batch: 12 of 20 requests, 1234 tokens, 345.6 tokens/s": on a terminal several times a second,
// else every ten seconds; End writes it once more and goes to the next line.
class RequestProgress {
 public:
  explicit RequestProgress(std::string_view what);
  void Show(int64_t done, int64_t total, int64_t tokens);
  void End();

 private:
  void Write(std::string_view end) const;

  std::string_view what_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point shown_;
  int64_t done_ = 0;
  int64_t total_ = 0;
  int64_t tokens_ = 0;
};

}  // namespace latte

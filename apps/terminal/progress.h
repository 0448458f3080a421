// Progress of a long job: one line on standard error, updated in place.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace latte {

// "written 1.50 of 31.41 GB". On a terminal at every whole percent, otherwise only at the end.
class ByteProgress {
 public:
  explicit ByteProgress(std::string_view what) : what_(what) {}
  ~ByteProgress();  // a job that ended early leaves the line to its error message
  void Show(int64_t done, int64_t total);

 private:
  std::string_view what_;
  bool amid_line_ = false;
};

// Prints notes for the user, one per line.
void ShowNotes(const std::vector<std::string>& notes);

// Reports how many layers are done, once `after` seconds have passed: short jobs report nothing.
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
// otherwise every ten seconds. End prints it once more and ends the line.
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

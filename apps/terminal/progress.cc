#include "apps/terminal/progress.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

namespace latte {

ByteProgress::~ByteProgress() {
  if (amid_line_) std::fputs("\n", stderr);
}

void ByteProgress::Show(int64_t done, int64_t total) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const int64_t step = total / 100 + 1;
  const bool end = done == total;
  if (!end && (!terminal || done / step == (done - 1) / step)) return;
  std::fputs(fmt::format("{}{} {:.2f} of {:.2f} GB{}", terminal ? "\r" : "", what_,
                         static_cast<double>(done) / 1e9, static_cast<double>(total) / 1e9,
                         end ? "\n" : "")
                 .c_str(),
             stderr);
  amid_line_ = !end;
}

void ShowNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes)
    std::fputs(fmt::format("latte: note: {}\n", note).c_str(), stderr);
}

LayerProgress::LayerProgress(std::string_view what, double after)
    : what_(what), after_(after), start_(std::chrono::steady_clock::now()) {}

void LayerProgress::operator()(int64_t done, int64_t layers) const {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const bool end = done == layers;
  if (passed.count() < after_ || (!end && !terminal)) return;
  std::fputs(fmt::format("{}{}: {} of {} layers{}", terminal ? "\r" : "", what_, done, layers,
                         end ? "\n" : "")
                 .c_str(),
             stderr);
}

RequestProgress::RequestProgress(std::string_view what)
    : what_(what),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()),
      shown_(start_) {}

void RequestProgress::Show(int64_t done, int64_t total, int64_t tokens) {
  done_ = done;
  total_ = total;
  tokens_ = tokens;
  const auto now = std::chrono::steady_clock::now();
  const auto pause = terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(10);
  if (now - shown_ < pause) return;
  shown_ = now;
  Write(terminal_ ? "" : "\n");
}

void RequestProgress::End() { Write("\n"); }

void RequestProgress::Write(std::string_view end) const {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  const double rate = static_cast<double>(tokens_) / std::max(passed.count(), 1e-9);
  std::fputs(fmt::format("{}{}: {} of {} requests, {} tokens, {:.1f} tokens/s{}",
                         terminal_ ? "\r" : "", what_, done_, total_, tokens_, rate, end)
                 .c_str(),
             stderr);
}

}  // namespace latte

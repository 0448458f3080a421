#include "apps/terminal/progress.h"

#include <algorithm>
#include <cstdio>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "apps/tell.h"
#include "apps/terminal/screen.h"
#include "src/base/timer.h"
#include "src/text/unicode/visible.h"

namespace latte {
namespace {

constexpr double kShort = 2;      // seconds of a job that shows nothing
constexpr double kCertain = 0.3;  // seconds before an estimate is worth something
constexpr auto kTick = std::chrono::seconds(1);
constexpr auto kUpdate = std::chrono::milliseconds(100);
constexpr auto kFirst = std::chrono::seconds(3);    // to the first line where no terminal is
constexpr auto kSparse = std::chrono::seconds(30);  // between the lines there
constexpr size_t kUnlimited = 200;                  // where no terminal limits the line

// One column less than the terminal has, so that the cursor stays on the line.
size_t Columns() {
  const int columns = ColumnsOf(STDERR_FILENO);
  return columns < 2 ? 79 : static_cast<size_t>(columns - 1);
}

// Names of what is measured hold characters of several bytes, each a column wide.
size_t WidthOf(std::string_view text) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins));
}

}  // namespace

Progress::Progress(std::string what, std::string noun, ProgressStyle style)
    : what_(std::move(what)),
      noun_(std::move(noun)),
      style_(style),
      updates_(style == ProgressStyle::kUsual && MovesCursor(STDERR_FILENO)),
      start_(Clock::now()),
      shown_(start_) {}

Progress::~Progress() { End(); }

// A job that is expected to end soon, or may end soon.
bool Progress::IsShort(double seconds, int64_t done, int64_t total) const {
  if (seconds >= kShort) return false;
  if (seconds < kCertain || done <= 0) return true;
  return seconds * static_cast<double>(total) / static_cast<double>(done) < kShort;
}

void Progress::Tick() {
  if (!updates_) return;
  const auto tick = [this](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stopped_.wait_for(lock, stop, kTick, [&] { return stop.stop_requested(); }))
      if (total_ > 0) ShowLocked();
  };
  try {
    ticker_ = std::jthread(tick);
  } catch (const std::system_error&) {  // no thread is free: progress alone needs none
  }
}

void Progress::StopTicking() { ticker_ = {}; }

JobProgress Progress::ForMeasurements() {
  return [this](int64_t done, int64_t total, std::string_view now) {
    ++measured_calls_;
    if (measured_calls_ == 2) StopTicking();
    Show(done, total, now);
    if (measured_calls_ == 1) Tick();
  };
}

void Progress::Show(int64_t done, int64_t total, std::string_view extra) {
  if (style_ == ProgressStyle::kNone) return;
  const std::lock_guard lock(mutex_);
  done_ = done;
  total_ = total;
  extra_ = extra;
  ShowLocked();
}

std::string Progress::Line() const {
  const size_t columns = updates_ ? Columns() : kUnlimited;
  const size_t taken = WidthOf(what_) + 1;
  const size_t free = columns > taken ? columns - taken : 0;
  std::string out =
      fmt::format("{} {}", what_, ProgressText(done_, total_, rate_.Get(), free, noun_));
  const std::string extra = VisibleLine(extra_);  // names of files and of what is measured
  if (!extra.empty() && WidthOf(out) + 2 + WidthOf(extra) <= columns) out += "  " + extra;
  return out.substr(0, columns);
}

void Progress::ShowLocked() {
  const auto now = Clock::now();
  const double seconds = Seconds(now - start_);
  rate_.Add(seconds, done_);
  if (ended_ || (!amid_line_ && IsShort(seconds, done_, total_))) return;
  const auto pause = !updates_    ? Clock::duration(shown_ == start_ ? kFirst : kSparse)
                     : amid_line_ ? kUpdate
                                  : Clock::duration();
  if (now - shown_ < pause && (done_ < total_ || !updates_)) return;
  shown_ = now;
  const std::string line = Line();
  const std::string text = updates_ ? fmt::format("{}{}\x1b[K", ToLineStart(), line) : line + "\n";
  std::fputs(text.c_str(), stderr);
  amid_line_ = updates_;
  shown_columns_ = WidthOf(line);
}

// A terminal that has become narrower has broken the line into rows.
std::string Progress::ToLineStart() const {
  std::string out = "\r";
  if (!amid_line_ || shown_columns_ == 0) return out;
  const size_t rows_above = (shown_columns_ - 1) / (Columns() + 1);
  for (size_t i = 0; i < rows_above; ++i) out += "\x1b[K\x1b[A";
  return out;
}

void Progress::ClearLine() {
  if (amid_line_) std::fputs((ToLineStart() + "\x1b[K").c_str(), stderr);
  amid_line_ = false;
}

void Progress::Clear() {
  const std::lock_guard lock(mutex_);
  ClearLine();
  total_ = 0;  // until the next Show
}

void Progress::Note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  ClearLine();
  TellLine("latte: note: " + text);
}

void Progress::EndWith(const std::string& line) {
  const std::lock_guard lock(mutex_);
  ClearLine();
  TellLine(line);
  ended_ = true;
}

void Progress::End() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(amid_line_, false)) std::fputs("\n", stderr);
  ended_ = true;
}

void ProgressOfParts::Show(int64_t done, int64_t total, std::string_view part) {
  if (!line_ || part != part_) line_.emplace(fmt::format("{:<10}", part), noun_);
  part_ = part;
  line_->Show(done, total);
}

LoadingHooks ProgressOfLoading::Hooks() {
  return {.repacked = [this](int64_t done, int64_t layers) { loading_.Show(done, layers); },
          .checked =
              [this](int64_t done, int64_t total) {
                loading_.End();
                checking_.Show(done, total);
              }};
}

void ProgressOfLoading::End() {
  loading_.End();
  checking_.End();
}

void ShowNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) TellLine("latte: note: " + note);
}

}  // namespace latte

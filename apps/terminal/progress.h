// Progress of a long job on standard error: on a terminal, one line that is updated in place;
// otherwise, a line after three seconds and every half minute.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "src/engine/core/create_engine.h"
#include "src/hub/progress_text.h"
#include "src/jobs/job_progress.h"

namespace latte {

enum class ProgressStyle {
  kUsual,  // in place on a terminal
  kLines,  // as where there is no terminal: between the lines of a log
  kNone,
};

// "written  42%  13.20 of 31.41 GB  85.20 MB/s  3:34 left". Jobs that take less than about two
//           seconds show nothing.
// The line is never wider than the terminal: what matters least is left out. Thread-safe.
class Progress {
 public:
  // `what`: the job. `noun`: what is counted, in the plural; empty: bytes.
  explicit Progress(std::string what, std::string noun = "",
                    ProgressStyle style = ProgressStyle::kUsual);
  ~Progress();  // as End

  // From now on the last state is shown again every second: also a job whose first step is long
  // shows something. Threads that must not receive signals start after they are blocked; this
  // starts one.
  void Tick();
  // No longer, and its thread has ended.
  void StopTicking();
  // `extra` goes to the end of the line, if it fits.
  void Show(int64_t done, int64_t total, std::string_view extra = {});
  // Show, for a job that must have the machine alone while it measures: ticks from the first call
  // to the second, so while the job prepares (MeasuredSteps). Valid as long as this object.
  JobProgress ForMeasurements();
  // "latte: note: …" above the line.
  void Note(const std::string& text);
  // Takes the line off the terminal, before other output.
  void Clear();

  // Prints `line` instead of the progress, which is shown no longer. May be called from any thread.
  void EndWith(const std::string& line);
  // Ends the line, which stays. Nothing is shown afterwards.
  void End();

 private:
  using Clock = std::chrono::steady_clock;
  void ShowLocked();
  std::string Line() const;
  bool IsShort(double seconds, int64_t done, int64_t total) const;
  std::string ToLineStart() const;
  void ClearLine();

  const std::string what_;
  const std::string noun_;
  const ProgressStyle style_;
  const bool updates_;  // in place
  const Clock::time_point start_;
  std::mutex mutex_;
  Clock::time_point shown_;
  TransferRate rate_;
  bool amid_line_ = false;
  size_t shown_columns_ = 0;  // of the line, amid it
  bool ended_ = false;
  int64_t done_ = 0;
  int64_t total_ = 0;
  std::string extra_;
  int64_t measured_calls_ = 0;  // of the callback of ForMeasurements
  std::condition_variable_any stopped_;
  std::jthread ticker_;  // last: it ends before the others are destroyed
};

// Progress of a job in parts: a line for each.
class ProgressOfParts {
 public:
  explicit ProgressOfParts(std::string noun) : noun_(std::move(noun)) {}

  // A line begins with each new part.
  void Show(int64_t done, int64_t total, std::string_view part);
  // Ends the line of the last part.
  void End() { line_.reset(); }

 private:
  const std::string noun_;
  std::string part_;
  std::optional<Progress> line_;
};

// Progress of the loading of weights, where it takes long.
class ProgressOfLoading {
 public:
  explicit ProgressOfLoading(ProgressStyle style = ProgressStyle::kUsual)
      : loading_("loaded weights", "layers", style), checking_("checked weights", "", style) {}

  // Valid as long as this object.
  LoadingHooks Hooks();
  void End();

 private:
  Progress loading_;
  Progress checking_;
};

// Prints notes for the user, one per line.
void ShowNotes(const std::vector<std::string>& notes);

}  // namespace latte

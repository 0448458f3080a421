// The progress of a job.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace latte {

// `now`: what is done at the moment; may be empty. Called by one thread at a time, and never in a
// section that the job times.
using JobProgress = std::function<void(int64_t done, int64_t total, std::string_view now)>;

// Counts the steps of a job that measures and knows how many it will take. The first call of `show`
// says that the job prepares. From the second on it measures, and nothing else may run.
class MeasuredSteps {
 public:
  MeasuredSteps(const JobProgress& show, int64_t total) : show_(show), total_(total) { Show(0); }

  // The next step begins, and the one before it has ended. `size`: what it counts of the total.
  void Begin(std::string_view step, int64_t size = 1) {
    done_ += size_;
    size_ = size;
    step_ = step;
    Show(0);
  }
  // Begin, for a step that is not timed: the job still prepares, if it is the first step.
  void WarmUp(std::string_view step) {
    if (size_ != 0) return Begin(step);
    size_ = 1;
  }
  // `part` of the step's size is done.
  void Within(int64_t part) const { Show(part); }
  // The last step has ended.
  void End() { Begin({}, 0); }

 private:
  void Show(int64_t part) const {
    if (show_) show_(done_ + part, total_, step_);
  }

  const JobProgress& show_;
  const int64_t total_;
  int64_t done_ = 0;
  int64_t size_ = 0;
  std::string step_ = "preparing";
};

}  // namespace latte

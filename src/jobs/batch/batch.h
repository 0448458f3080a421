// A file of requests in the OpenAI batch format, through an engine, to a file of results.
//
// Results are written as requests finish. A run that was interrupted, even by kill -9, is gone on
// with by the same call: what succeeded is not computed again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "latte/engine.h"

#include "src/base/file.h"
#include "src/jobs/batch/batch_line.h"
#include "src/jobs/batch/batch_output.h"
#include "src/openai/response.h"

namespace latte {

struct BatchFiles {
  std::string input;
  std::string output;
  bool overwrite = false;  // forget the results of an earlier run
};

struct BatchProgress {
  int64_t lines = 0;    // requests of the input
  int64_t resumed = 0;  // of them, done by an earlier run
  int64_t done = 0;     // of them, done by this run
  int64_t failed = 0;   // of those done by this run
  // What requests of this run ask for without effect, and how many of them (OpenAiRequest::notes).
  std::map<std::string, int64_t> notes;
};

struct BatchHooks {
  std::function<bool()> interrupted;                  // asked once a step; true ends the run
  std::function<void(const BatchProgress&)> on_step;  // once a step
};

// For the one thread that drives the engine.
class Batch {
 public:
  // Looks through both files. Errors: of MappedFile::Open and BatchOutput::Open; kInvalidArgument
  // for a custom_id that stands twice in the input, and when both files are one.
  [[nodiscard]] static Result<Batch> Open(const BatchFiles& files);

  // Answers what is left. Sets the engine's event sink while it runs. A request that is wrong or
  // fails becomes a result that says so.
  // Errors: kCancelled when interrupted; of Engine::Step; kUnavailable when results cannot be
  // written. What was written stays.
  [[nodiscard]] Status Run(Engine* engine, const OpenAiModel& model, const BatchHooks& hooks);

  const BatchProgress& progress() const { return progress_; }
  bool finished() const { return progress_.resumed + progress_.done == progress_.lines; }

 private:
  struct Line {
    std::string_view text;
    BatchLineId id;
  };
  struct Running {
    BatchLineId line;
    OpenAiAnswer answer;
  };

  Batch(std::shared_ptr<const MappedFile> file, std::vector<Line> lines, BatchOutput output);
  static Result<std::vector<Line>> ReadLines(const MappedFile& file);
  Status SubmitMore(Engine* engine, const OpenAiModel& model);
  // False: there is no line left, or no room for one more.
  Result<bool> SubmitNext(Engine* engine, const OpenAiModel& model);
  Result<OpenAiRequest> Parse(const Line& line, const OpenAiModel& model) const;
  Status Note(std::span<const TokenEvent> events, const OpenAiModel& model);
  Status Write(const JsonOut& result, bool failed);

  std::shared_ptr<const MappedFile> file_;  // the text of lines_
  std::vector<Line> lines_;                 // those to be done
  size_t next_ = 0;                         // of lines_
  std::optional<OpenAiRequest> parsed_;     // of lines_[next_]: the queue was full
  BatchOutput output_;
  std::unordered_map<uint64_t, Running> running_;  // by Request::user_data
  BatchProgress progress_;
};

}  // namespace latte

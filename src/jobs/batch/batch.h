// Runs a file of requests in the OpenAI batch format through an engine and writes a file of
// results.
//
// Results are written as requests finish. After an interruption, even by kill -9, the same call
// resumes the run and does not repeat requests that succeeded.
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

#include "src/api/running.h"
#include "src/base/file.h"
#include "src/jobs/batch/batch_line.h"
#include "src/jobs/batch/batch_output.h"

namespace latte {

struct BatchFiles {
  std::string input;
  std::string output;
  bool overwrite = false;  // discard the results of an earlier run
};

struct BatchProgress {
  int64_t lines = 0;    // number of requests in the input
  int64_t resumed = 0;  // requests that an earlier run finished
  int64_t done = 0;     // requests that this run finished
  int64_t failed = 0;   // of them, requests that failed
  // Requested settings without effect, and the number of requests with each (ApiRequest::notes).
  std::map<std::string, int64_t> notes;
};

struct BatchHooks {
  std::function<bool()> interrupted;                  // called once per step; true ends the run
  std::function<void(const BatchProgress&)> on_step;  // called once per step
};

// Use from the thread that drives the engine.
class Batch {
 public:
  // Reads both files.
  // Errors: of MappedFile::Open and BatchOutput::Open; kInvalidArgument for a repeated custom_id in
  // the input, and if both files are the same.
  [[nodiscard]] static Result<Batch> Open(const BatchFiles& files);

  // Runs the remaining requests. Sets the engine's event sink while it runs. A request that is
  // invalid or fails gives a result with the error.
  // Errors: kCancelled if interrupted; of Engine::Step; kUnavailable if results cannot be written.
  // Written results are kept.
  [[nodiscard]] Status Run(Engine* engine, const ApiModel& model, const BatchHooks& hooks);

  // The rules for the requests that Run reads.
  void SetRules(const ApiRules& rules) { rules_ = rules; }

  const BatchProgress& progress() const { return progress_; }
  bool finished() const { return progress_.resumed + progress_.done == progress_.lines; }

 private:
  struct Line {
    std::string_view text;
    BatchLineId id;
  };
  struct Running {
    BatchLineId line;
    ApiRunning request;
    std::vector<std::string> notes;
    std::vector<RequestId> submitted;  // one for each prompt
    std::optional<Request> refused;    // a prompt that waits for a place in the queue
  };
  // One prompt of a line in the engine.
  struct Prompt {
    std::shared_ptr<Running> line;
    size_t index = 0;
  };
  Batch(std::shared_ptr<const MappedFile> file, std::vector<Line> lines, BatchOutput output);
  static Result<std::vector<Line>> ReadLines(const MappedFile& file);
  Status SubmitMore(Engine* engine, const ApiModel& model);
  // Submits one prompt. Returns false if none is left, or if the queue is full.
  Result<bool> SubmitNext(Engine* engine, const ApiModel& model);
  // Reads the next line; a bad one gets its result. Requires: there is one.
  Status Begin(const ApiModel& model);
  Status FailSubmitting(Engine* engine, const Error& error);
  Result<ApiRequest> Parse(const BatchLine& line, const ApiModel& model) const;
  Status Note(Engine* engine, std::span<const TokenEvent> events);
  Status Write(std::string_view result, bool failed);

  std::shared_ptr<const MappedFile> file_;  // holds the text of lines_
  std::vector<Line> lines_;                 // the lines that remain to be done
  size_t next_ = 0;                         // index into lines_
  std::shared_ptr<Running> submitting_;     // a line whose prompts are being submitted
  uint64_t prompts_ = 0;                    // submitted so far: names them in Request::user_data
  BatchOutput output_;
  std::unordered_map<uint64_t, Prompt> running_;  // by Request::user_data
  BatchProgress progress_;
  ApiRules rules_;
};

}  // namespace latte

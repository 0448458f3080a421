#include "src/jobs/batch/batch.h"

#include <chrono>
#include <filesystem>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "src/api/request.h"
#include "src/base/check.h"
#include "src/base/json_out.h"
#include "src/base/strings.h"
#include "src/base/timer.h"

namespace latte {
namespace {

std::string Where(const std::string& path, int64_t line) {
  return fmt::format("{}: line {}", path, line);
}

Status CheckPaths(const BatchFiles& files) {
  std::error_code none;  // the output may not exist yet
  if (std::filesystem::equivalent(files.input, files.output, none))
    return InvalidArgument(files.output + ": expected an output file other than the input");
  return {};
}

}  // namespace

Result<std::vector<Batch::Line>> Batch::ReadLines(const MappedFile& file) {
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  std::vector<Line> lines;
  std::unordered_map<std::string, int64_t> numbers;
  int64_t number = 0;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    ++number;
    end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (IsBlank(line)) continue;
    Line& added = lines.emplace_back(Line{line, {number, FindCustomId(line)}});
    if (!added.id.custom_id) continue;
    const auto [first, is_new] = numbers.emplace(*added.id.custom_id, number);
    if (!is_new)
      return InvalidArgument(
          fmt::format("{}: custom_id '{}' stands in line {} too; results could not be told apart",
                      Where(file.path(), number), *added.id.custom_id, first->second));
  }
  return lines;
}

Result<Batch> Batch::Open(const BatchFiles& files) {
  LATTE_RETURN_IF_ERROR(CheckPaths(files));
  LATTE_ASSIGN_OR_RETURN(auto file, MappedFile::Open(files.input));
  LATTE_ASSIGN_OR_RETURN(std::vector<Line> lines, ReadLines(*file));
  std::unordered_set<std::string> ids;
  for (const Line& line : lines)
    if (line.id.custom_id) ids.insert(*line.id.custom_id);
  LATTE_ASSIGN_OR_RETURN(BatchOutput output, BatchOutput::Open(files.output, files.overwrite,
                                                               [&](const std::string& id) {
                                                                 return ids.contains(id);
                                                               }));
  if (lines.empty()) LATTE_RETURN_IF_ERROR(output.Close());  // there will be no results
  return Batch(std::move(file), std::move(lines), std::move(output));
}

Batch::Batch(std::shared_ptr<const MappedFile> file, std::vector<Line> lines, BatchOutput output)
    : file_(std::move(file)), lines_(std::move(lines)), output_(std::move(output)) {
  progress_.lines = static_cast<int64_t>(lines_.size());
  std::erase_if(lines_, [&](const Line& line) {
    return line.id.custom_id && output_.finished().contains(*line.id.custom_id);
  });
  progress_.resumed = progress_.lines - static_cast<int64_t>(lines_.size());
}

Status Batch::Run(Engine* engine, const ApiModel& model, const BatchHooks& hooks) {
  Status noted;
  engine->SetEventSink([&](std::span<const TokenEvent> events) {
    if (noted) noted = Note(engine, events);
  });
  const auto run = [&]() -> Status {
    constexpr auto kPatience = std::chrono::milliseconds(100);
    while (next_ < lines_.size() || submitting_ || !running_.empty()) {
      LATTE_RETURN_IF_ERROR(SubmitMore(engine, model));
      LATTE_RETURN_IF_ERROR(engine->Step());
      LATTE_RETURN_IF_ERROR(noted);
      if (hooks.on_step) hooks.on_step(progress_);
      if (hooks.interrupted && hooks.interrupted() && !finished())
        return Fail(Code::kCancelled,
                    fmt::format("interrupted: {} of {} requests have results; the same command "
                                "goes on from there",
                                progress_.resumed + progress_.done, progress_.lines));
      if (!running_.empty()) engine->WaitForWork(std::chrono::steady_clock::now() + kPatience);
    }
    return {};
  };
  Status status = run();
  engine->SetEventSink({});
  return status ? output_.Close() : status;
}

Status Batch::SubmitMore(Engine* engine, const ApiModel& model) {
  // A full queue takes long to read, and Ctrl-C is checked once per step, so the first step must
  // come soon.
  constexpr int kMostAtOnce = 64;
  for (int i = 0; i < kMostAtOnce; ++i) {
    LATTE_ASSIGN_OR_RETURN(const bool more, SubmitNext(engine, model));
    if (!more) return {};
  }
  return {};
}

Result<ApiRequest> Batch::Parse(const BatchLine& line, const ApiModel& model) const {
  LATTE_ASSIGN_OR_RETURN(ApiRequest out, ParseApiRequest(line.endpoint, line.body, model, rules_));
  if (out.reply.stream)
    return InvalidArgument("stream: expected false, because a batch cannot stream");
  return out;
}

Status Batch::Begin(const ApiModel& model) {
  const Line& line = lines_[next_++];
  const Result<BatchLine> parsed = ParseBatchLine(line.text, Where(file_->path(), line.id.number));
  if (!parsed) return Write(BatchFailure(line.id, parsed.error()), true);
  Result<ApiRequest> request = Parse(*parsed, model);
  if (!request) return Write(BatchFailure(line.id, request.error(), parsed->endpoint), true);
  std::vector<std::string> notes = request->notes;
  ApiRunning running(std::move(*request), &model, std::to_string(line.id.number), UnixSeconds());
  submitting_ =
      std::make_shared<Running>(Running{line.id, std::move(running), std::move(notes), {}, {}});
  return {};
}

Result<bool> Batch::SubmitNext(Engine* engine, const ApiModel& model) {
  if (!submitting_) {
    if (next_ == lines_.size()) return false;
    LATTE_RETURN_IF_ERROR(Begin(model));
    if (!submitting_) return true;
  }
  const std::shared_ptr<Running> submitted = submitting_;
  Running& line = *submitted;
  const size_t index = line.submitted.size();
  Request request = line.refused ? std::move(*line.refused) : line.request.TakePrompt(index);
  line.refused.reset();
  request.user_data = prompts_++;
  // Its first event may come before Submit returns.
  running_.emplace(request.user_data, Prompt{submitting_, index});
  const Result<RequestId> id = engine->Submit(request);
  if (id) {
    line.submitted.push_back(*id);
    if (submitting_ != submitted) {  // its events came first, and ended the line
      if (line.request.error()) engine->Cancel(*id);
      return true;
    }
    if (line.submitted.size() < line.request.prompts()) return true;
    submitting_.reset();
    return true;
  }
  running_.erase(request.user_data);
  if (id.error().code == Code::kExhausted && !running_.empty()) {
    line.refused = std::move(request);
    return false;
  }
  LATTE_RETURN_IF_ERROR(FailSubmitting(engine, id.error()));
  return true;
}

// The line fails as a whole; prompts that the engine has already are not computed any more.
Status Batch::FailSubmitting(Engine* engine, const Error& error) {
  const std::shared_ptr<Running> line = std::exchange(submitting_, {});
  for (const RequestId id : line->submitted) engine->Cancel(id);
  std::erase_if(running_, [&](const auto& entry) { return entry.second.line == line; });
  return Write(BatchFailure(line->line, error, line->request.reply().endpoint), true);
}

Status Batch::Note(Engine* engine, std::span<const TokenEvent> events) {
  for (const TokenEvent& event : events) {
    const auto found = running_.find(event.user_data);
    if (found == running_.end()) continue;  // of a line that has failed
    const auto [line, index] = found->second;
    ApiRunning& request = line->request;
    request.Add(index, event, nullptr);
    if (!request.done()) continue;
    if (submitting_ == line) submitting_.reset();
    for (const RequestId id : line->submitted)
      if (request.error()) engine->Cancel(id);
    std::erase_if(running_, [&](const auto& entry) { return entry.second.line == line; });
    for (const std::string& note : line->notes) ++progress_.notes[note];
    const bool failed = request.error().has_value();
    const ApiEndpoint endpoint = request.reply().endpoint;
    LATTE_RETURN_IF_ERROR(Write(failed ? BatchFailure(line->line, *request.error(), endpoint)
                                       : BatchResult(line->line, request.Body()),
                                failed));
  }
  return {};
}

Status Batch::Write(std::string_view result, bool failed) {
  LATTE_RETURN_IF_ERROR(output_.Append(result));
  ++progress_.done;
  if (failed) ++progress_.failed;
  return {};
}

}  // namespace latte

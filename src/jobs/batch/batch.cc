#include "src/jobs/batch/batch.h"

#include <chrono>
#include <filesystem>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "src/base/check.h"
#include "src/base/json_out.h"

namespace latte {
namespace {

std::string Where(const std::string& path, int64_t line) {
  return fmt::format("{}: line {}", path, line);
}

int64_t SecondsNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
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
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
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

Status Batch::Run(Engine* engine, const OpenAiModel& model, const BatchHooks& hooks) {
  Status noted;
  engine->SetEventSink([&](std::span<const TokenEvent> events) {
    if (noted) noted = Note(events, model);
  });
  const auto run = [&]() -> Status {
    constexpr auto kPatience = std::chrono::milliseconds(100);
    while (next_ < lines_.size() || !running_.empty()) {
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

Status Batch::SubmitMore(Engine* engine, const OpenAiModel& model) {
  // A full queue takes long to read, and Ctrl-C is checked once per step, so the first step must
  // come soon.
  constexpr int kMostAtOnce = 64;
  for (int i = 0; i < kMostAtOnce; ++i) {
    LATTE_ASSIGN_OR_RETURN(const bool more, SubmitNext(engine, model));
    if (!more) return {};
  }
  return {};
}

Result<OpenAiRequest> Batch::Parse(const Line& line, const OpenAiModel& model) const {
  LATTE_ASSIGN_OR_RETURN(const BatchLine parsed,
                         ParseBatchLine(line.text, Where(file_->path(), line.id.number)));
  LATTE_ASSIGN_OR_RETURN(OpenAiRequest out,
                         ParseOpenAiRequest(parsed.endpoint, parsed.body, model));
  if (out.reply.stream)
    return InvalidArgument("stream: expected false, because a batch cannot stream");
  return out;
}

Result<bool> Batch::SubmitNext(Engine* engine, const OpenAiModel& model) {
  if (next_ == lines_.size()) return false;
  const Line& line = lines_[next_];
  Result<OpenAiRequest> request =
      parsed_ ? Result<OpenAiRequest>(*std::exchange(parsed_, {})) : Parse(line, model);
  const Result<RequestId> id = request.and_then([&](OpenAiRequest& r) -> Result<RequestId> {
    r.request.user_data = next_;
    // Its first event may come before Submit returns.
    running_.emplace(next_, Running{line.id, OpenAiAnswer(r.reply)});
    return engine->Submit(r.request);
  });
  if (!id) running_.erase(next_);
  if (id) {
    for (const std::string& note : request->notes) ++progress_.notes[note];
  } else if (id.error().code == Code::kExhausted && !running_.empty()) {
    parsed_ = std::move(*request);
    return false;
  } else {
    LATTE_RETURN_IF_ERROR(Write(BatchFailure(line.id, id.error()), true));
  }
  ++next_;
  return true;
}

Status Batch::Note(std::span<const TokenEvent> events, const OpenAiModel& model) {
  for (const TokenEvent& event : events) {
    const auto found = running_.find(event.user_data);
    LATTE_CHECK(found != running_.end(), "an event of request {}, which is done", event.request);
    auto& [line, answer] = found->second;
    answer.Add(event);
    if (!answer.done()) continue;
    const bool failed = answer.error().has_value();
    const JsonOut result =
        failed ? BatchFailure(line, *answer.error())
               : BatchResult(
                     line, answer.Body(model.tokenizer, std::to_string(line.number), SecondsNow()));
    LATTE_RETURN_IF_ERROR(Write(result, failed));
    running_.erase(found);
  }
  return {};
}

Status Batch::Write(const JsonOut& result, bool failed) {
  LATTE_RETURN_IF_ERROR(output_.Append(result));
  ++progress_.done;
  if (failed) ++progress_.failed;
  return {};
}

}  // namespace latte

#include "src/hub/download.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <set>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "src/base/limits/out_of_memory.h"
#include "src/hub/download_worker.h"

namespace latte {
namespace {

constexpr auto kTick = std::chrono::milliseconds(200);
constexpr int kTicksPerSave = 5;
constexpr int kMostBadCopies = 2;  // of one file, before the server is taken to have no other

}  // namespace

Download::Download(DownloadSource source, const RepoFolder& folder, std::vector<HubFile> files,
                   DownloadOptions options, HttpFactory http, std::atomic<bool>& stop)
    : source_(std::move(source)),
      folder_(folder),
      options_(std::move(options)),
      http_(std::move(http)),
      stop_(stop) {
  std::set<std::string> contents;
  for (HubFile& file : files) {
    if (!contents.insert(file.oid).second) continue;
    auto job = std::make_unique<DownloadJob>();
    job->blob = folder.Blob(file);
    job->done = folder.HasBlob(file);
    job->missing = job->done ? 0 : MissingBytes(job->blob, file.size);
    job->file = std::move(file);
    jobs_.push_back(std::move(job));
  }
}

Download::~Download() = default;

int64_t Download::done() const {
  const std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (const auto& job : jobs_)
    sum += job->file.size - (job->done ? 0 : job->bytes ? job->bytes->missing() : job->missing);
  return sum;
}

void Download::Note(const std::string& line) const {
  if (options_.note) options_.note(line);
}

void Download::End(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    stop_.store(true);
  }
  changed_.notify_all();
}

bool Download::Wait(double seconds) {
  std::unique_lock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!stop_.load() && std::chrono::steady_clock::now() < until)
    changed_.wait_for(lock, std::min<std::chrono::duration<double>>(
                                kTick, until - std::chrono::steady_clock::now()));
  return !stop_.load();
}

Result<std::optional<DownloadClaim>> Download::NextClaim() {
  const std::lock_guard lock(mutex_);
  for (const auto& job : jobs_) {
    if (job->done) continue;
    if (!job->bytes) {
      LATTE_ASSIGN_OR_RETURN(job->bytes, PartialFile::Open(job->blob, job->file.size));
      if (job->bytes->missing() == 0) return DownloadClaim{job.get(), {}};
    }
    const int64_t share = job->file.size / options_.connections + 1;
    const int64_t most = std::clamp(share, options_.least_range, options_.most_range);
    if (const auto range = job->bytes->Claim(most)) return DownloadClaim{job.get(), *range};
  }
  return std::nullopt;
}

// Gives a complete file its name. A wrong one is fetched again, once; one that cannot be read stays
// for the next run.
Status Download::Finish(DownloadJob& job) {
  if (!job.bytes->TakeComplete()) return {};
  const Status verified = job.bytes->Verify(job.file, stop_);
  if (verified) {
    LATTE_RETURN_IF_ERROR(job.bytes->Commit());
    {
      const std::lock_guard lock(mutex_);
      job.done = true;
    }
    return options_.complete ? options_.complete(job.file) : Status();
  }
  if (verified.error().code != Code::kCorrupt) {
    job.bytes->Untake();
    return verified;
  }
  if (++job.bad_copies == kMostBadCopies) {
    job.bytes->Discard();
    return Fail(Code::kCorrupt,
                fmt::format("{}; it was fetched twice and is not kept; {} may have a damaged "
                            "copy: try later, or another HF_ENDPOINT",
                            verified.error().message, source_.hub.endpoint));
  }
  Note(fmt::format("{}; fetching it again", verified.error().message));
  job.bytes->Restart();
  return {};
}

Status Download::WorkUntilDone() {
  LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<Http> http, http_());
  DownloadWorker worker(source_, *http, options_, [this](double seconds) { return Wait(seconds); });
  while (!stop_.load()) {
    LATTE_ASSIGN_OR_RETURN(const std::optional<DownloadClaim> claim, NextClaim());
    if (!claim) return {};
    LATTE_RETURN_IF_ERROR(worker.Fetch(*claim->job, claim->range));
    LATTE_RETURN_IF_ERROR(Finish(*claim->job));
  }
  return {};
}

void Download::Work() {
  try {
    if (const Status status = WorkUntilDone(); !status) End(status.error());
  } catch (const std::exception& thrown) {  // lack of memory; nothing else throws
    End(ErrorOf(thrown));
  }
  {
    const std::lock_guard lock(mutex_);
    --working_;
  }
  changed_.notify_all();
}

Status Download::SaveStates() const {
  const std::lock_guard lock(mutex_);
  for (const auto& job : jobs_)
    if (!job->done && job->bytes) LATTE_RETURN_IF_ERROR(job->bytes->Save());
  return {};
}

Status Download::Run(const std::function<void()>& tick) {
  std::vector<std::jthread> threads;
  working_ = std::max(1, options_.connections);
  const int wanted = working_;
  for (int i = 0; i < wanted; ++i) {
    try {
      threads.emplace_back([this] { Work(); });
    } catch (const std::system_error&) {  // no more threads: those that run do the work
      const std::lock_guard lock(mutex_);
      working_ -= wanted - i;
      if (i == 0) return Fail(Code::kUnavailable, "no thread could be started");
      break;
    }
  }
  for (int ticks = 1;; ++ticks) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kTick);
      if (working_ == 0) break;
    }
    tick();
    if (ticks % kTicksPerSave != 0) continue;
    if (const Status saved = SaveStates(); !saved) End(saved.error());
  }
  threads.clear();
  const Status saved = SaveStates();
  tick();
  if (error_) return tl::unexpected(*error_);
  if (stop_.load()) return Fail(Code::kCancelled, "stopped");
  for (const auto& job : jobs_)
    if (!job->done) return Internal(job->file.path + ": the download ended without it");
  return saved;
}

}  // namespace latte

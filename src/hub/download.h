// Downloads the blobs of a repository over several connections, each of which fetches a range of a
// file at a time, and verifies every file before it gets its name.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/hub/fault.h"
#include "src/hub/files/partial_file.h"
#include "src/hub/files/snapshot.h"
#include "src/hub/hub_get.h"

namespace latte {

struct DownloadOptions {
  int connections = 4;
  RetryPolicy retry;
  int64_t least_range = int64_t{4} << 20;  // bytes of a request, of files that are divided
  int64_t most_range = int64_t{128} << 20;
  std::function<void(const std::string&)> note;    // one line for the user, from any thread
  std::function<Status(const HubFile&)> complete;  // verified and named, from any thread
};

// A commit of a repository, and the Hub that has it.
struct DownloadSource {
  HubEnvironment hub;
  std::string repo;
  std::string commit;
};

struct DownloadJob;
struct DownloadClaim;

class Download {
 public:
  // Files of equal content are one download. `stop` ends it and, when one connection fails for
  // good, is set. `http` ends its requests then.
  Download(DownloadSource source, const RepoFolder& folder, std::vector<HubFile> files,
           DownloadOptions options, HttpFactory http, std::atomic<bool>& stop);
  ~Download();

  // Bytes of all contents that have arrived, in this and in earlier runs.
  int64_t done() const;

  // Fetches what is missing. Calls `tick` about five times a second. After an error, what has
  // arrived is kept for the next run. Errors: kCancelled for `stop`; of NextTry, PartialFile and
  // `complete`.
  [[nodiscard]] Status Run(const std::function<void()>& tick);

 private:
  void Work();
  Status WorkUntilDone();
  Result<std::optional<DownloadClaim>> NextClaim();
  Status Finish(DownloadJob& job);
  Status SaveStates() const;
  void End(const Error& error);
  bool Wait(double seconds);  // false: stopped
  void Note(const std::string& line) const;

  const DownloadSource source_;
  const RepoFolder& folder_;
  const DownloadOptions options_;
  const HttpFactory http_;
  std::atomic<bool>& stop_;
  std::vector<std::unique_ptr<DownloadJob>> jobs_;

  mutable std::mutex mutex_;  // of what follows, and of the jobs' files being opened
  std::condition_variable changed_;
  int working_ = 0;
  std::optional<Error> error_;
};

}  // namespace latte

// One connection of a download: fetches ranges of files, and retries after temporary errors.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "src/hub/fault.h"
#include "src/hub/files/partial_file.h"
#include "src/hub/hub_get.h"
#include "src/hub/repo/listing.h"

namespace latte {

struct DownloadOptions;
struct DownloadSource;

// A content that is downloaded, by the name of the first file that has it. The connections share
// it.
struct DownloadJob {
  HubFile file;
  std::string blob;
  int64_t missing = 0;                 // before `bytes` is open
  std::unique_ptr<PartialFile> bytes;  // opened with the first claim
  bool done = false;
  int bad_copies = 0;                 // whose checksum was wrong
  std::atomic<bool> changed = false;  // the server's ETag differed once
  std::atomic<bool> ignore_tag =
      false;  // it differed twice: servers disagree, the checksum decides

  std::mutex mutex;
  std::string location;  // where the Hub redirected to; empty: ask the Hub
};

struct DownloadClaim {
  DownloadJob* job = nullptr;
  ByteRange range;  // empty: the file was complete on the disk
};

class DownloadWorker {
 public:
  // `wait` pauses for some seconds; false: stopped.
  DownloadWorker(const DownloadSource& source, Http& http, const DownloadOptions& options,
                 std::function<bool(double)> wait);

  // Fetches the claimed range, or gives up and releases what is left of it. True also when the file
  // has to be claimed anew, because the server sends it as a whole only, or sends another file.
  // Errors: of NextTry; kCancelled; of PartialFile::Write.
  [[nodiscard]] Status Fetch(DownloadJob& job, ByteRange range);

 private:
  struct Attempt;

  Attempt FetchOnce(DownloadJob& job, ByteRange asked);
  Attempt Judge(DownloadJob& job, const HubReply& reply, ByteRange asked, Attempt attempt) const;
  std::optional<Fault> CheckRedirect(const DownloadJob& job, const HttpHead& head) const;
  Asked AskedFor(const DownloadJob& job, const HubReply& reply) const;
  std::string Url(DownloadJob& job) const;

  const DownloadSource& source_;
  Http& http_;
  const DownloadOptions& options_;
  const std::function<bool(double)> wait_;
};

// The headers of a request for `range` of a file of `size` bytes. `tag`: the ETag of the bytes that
// are there; weak ones and none are left out.
std::vector<std::string> RangeHeaders(ByteRange range, int64_t size, const std::string& tag);

// The content of a response to such a request.
enum class BodyKind {
  kRange,      // the requested range
  kWhole,      // the whole file, as requested
  kUndivided,  // the whole file instead of the range
  kChanged,    // bytes of another file than before
  kWrong,      // something else; `why` says what
};
BodyKind KindOfBody(const HttpHead& head, ByteRange range, int64_t size, const std::string& tag,
                    std::string* why);

}  // namespace latte

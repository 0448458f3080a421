#include "src/hub/download_worker.h"

#include <charconv>

#include <fmt/format.h>

#include "src/http/client/url.h"
#include "src/hub/download.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

// "12" → 12; nothing for anything else.
std::optional<int64_t> Number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// ETag without "W/" and quotes, as huggingface_hub names blobs.
std::string_view BareTag(std::string_view tag) {
  if (tag.starts_with("W/")) tag.remove_prefix(2);
  if (tag.starts_with('"')) tag.remove_prefix(1);
  if (tag.ends_with('"')) tag.remove_suffix(1);
  return tag;
}

Fault Corrupted(std::string message) {
  return {Fault::Kind::kRetry, Error{Code::kCorrupt, std::move(message)}, std::nullopt};
}

Fault FatalFault(Error error) { return {Fault::Kind::kFatal, std::move(error), std::nullopt}; }

}  // namespace

std::vector<std::string> RangeHeaders(ByteRange range, int64_t size, const std::string& tag) {
  std::vector<std::string> out = {"Accept-Encoding: identity"};
  if (range.begin == 0 && range.end == size) return out;
  out.push_back(fmt::format("Range: bytes={}-{}", range.begin, range.end - 1));
  if (tag.starts_with('"')) out.push_back("If-Range: " + tag);
  return out;
}

BodyKind KindOfBody(const HttpHead& head, ByteRange range, int64_t size, const std::string& tag,
                    std::string* why) {
  const std::string& now = head.Get("etag");
  const bool changed = !tag.empty() && !now.empty() && tag != now;
  const std::string& encoding = head.Get("content-encoding");
  const std::optional<int64_t> length = Number(head.Get("content-length"));
  if (!encoding.empty() && encoding != "identity") {
    *why = fmt::format("expected plain bytes, found the encoding '{}'", Printable(encoding, 40));
    return BodyKind::kWrong;
  }
  const bool ranged = head.status == 206;
  const bool whole = range.begin == 0 && range.end == size;
  if (ranged) {
    const std::string expected = fmt::format("bytes {}-{}/{}", range.begin, range.end - 1, size);
    if (head.Get("content-range") != expected) {
      *why = fmt::format("expected '{}', found '{}'", expected,
                         Printable(head.Get("content-range"), 80));
      return BodyKind::kWrong;
    }
  } else if (length && *length != size) {
    *why = fmt::format("expected {} bytes as in the repository's listing, found {}", size, *length);
    return BodyKind::kWrong;
  }
  if (changed && !whole) return BodyKind::kChanged;
  if (ranged) return BodyKind::kRange;
  return whole ? BodyKind::kWhole : BodyKind::kUndivided;
}

// What one request brought.
struct DownloadWorker::Attempt {
  BodyKind kind = BodyKind::kWrong;
  std::string why;
  int64_t arrived = 0;
  bool again = false;          // the file has to be claimed anew
  std::optional<Fault> fault;  // nothing: the range is complete
};

DownloadWorker::DownloadWorker(const DownloadSource& source, Http& http,
                               const DownloadOptions& options, std::function<bool(double)> wait)
    : source_(source), http_(http), options_(options), wait_(std::move(wait)) {}

std::string DownloadWorker::Url(DownloadJob& job) const {
  const std::lock_guard lock(job.mutex);
  return job.location.empty() ? FileUrl(source_.hub, source_.repo, source_.commit, job.file.path)
                              : job.location;
}

Asked DownloadWorker::AskedFor(const DownloadJob& job, const HubReply& reply) const {
  const Result<HttpUrl> url = ParseWebUrl(reply.url);
  return {source_.repo, source_.commit, job.file.path, url ? url->host : "the server",
          reply.redirected};
}

// The Hub tells what it redirects to: the listing must not say otherwise.
std::optional<Fault> DownloadWorker::CheckRedirect(const DownloadJob& job,
                                                   const HttpHead& head) const {
  const auto differs = [&](const char* name, std::string_view listed) -> std::optional<Fault> {
    const std::string found(BareTag(head.Get(name)));
    if (found.empty() || found == listed) return std::nullopt;
    return Corrupted(fmt::format(
        "{}: {}: expected {} as in the repository's listing, found '{}'; the server contradicts "
        "itself: try again later",
        job.file.path, name, listed, Printable(found, 80)));
  };
  if (auto fault = differs("x-repo-commit", source_.commit)) return fault;
  if (auto fault = differs("x-linked-size", fmt::to_string(job.file.size))) return fault;
  return job.file.is_large() ? differs("x-linked-etag", job.file.oid) : std::nullopt;
}

// What to make of a response whose body, if it was wanted, has arrived.
DownloadWorker::Attempt DownloadWorker::Judge(DownloadJob& job, const HubReply& reply,
                                              ByteRange asked, Attempt attempt) const {
  const bool answered = reply.head.status == 200 || reply.head.status == 206;
  {
    const std::lock_guard lock(job.mutex);
    job.location = answered && reply.redirected ? reply.url : "";
  }
  if (!answered) {
    attempt.fault = FaultOfStatus(reply.head, AskedFor(job, reply), source_.hub);
  } else if (attempt.kind == BodyKind::kWrong) {
    attempt.fault = Corrupted(fmt::format("{}: {}", job.file.path, attempt.why));
  } else if (attempt.kind == BodyKind::kUndivided) {
    job.bytes->MakeUndivided();
    attempt.again = true;
  } else if (attempt.kind == BodyKind::kChanged) {
    if (job.changed.exchange(true)) {
      job.ignore_tag = true;
      job.bytes->Release(asked);
    } else {
      job.bytes->Restart();
    }
    attempt.again = true;
  } else if (attempt.arrived < asked.size()) {
    attempt.fault = Corrupted(fmt::format("{}: expected {} bytes, found {}", job.file.path,
                                          asked.size(), attempt.arrived));
  }
  return attempt;
}

DownloadWorker::Attempt DownloadWorker::FetchOnce(DownloadJob& job, ByteRange asked) {
  Attempt out;
  const std::string tag = job.ignore_tag ? "" : job.bytes->tag();
  HttpBody body;
  body.begin = [&](const HttpHead& head) {
    out.kind = KindOfBody(head, asked, job.file.size, tag, &out.why);
    if (out.kind != BodyKind::kRange && out.kind != BodyKind::kWhole) return false;
    if (tag.empty() || out.kind == BodyKind::kWhole) job.bytes->SetTag(head.Get("etag"));
    return true;
  };
  body.write = [&](std::span<const std::byte> bytes) {
    const int64_t at = asked.begin + out.arrived;
    const auto size = static_cast<int64_t>(bytes.size());
    if (at + size > asked.end) {
      out.fault = FatalFault(
          {Code::kCorrupt, fmt::format("{}: expected {} bytes, found more; the server contradicts "
                                       "the repository's listing",
                                       job.file.path, asked.size())});
    } else if (const Status written = job.bytes->Write(at, bytes); !written) {
      out.fault = FatalFault(written.error());
    } else {
      out.arrived += size;
    }
    return !out.fault;
  };
  const auto follow = [&](const HttpHead& head) {
    out.fault = CheckRedirect(job, head);
    return !out.fault;
  };
  const auto reply =
      HubGet(http_, source_.hub, Url(job), RangeHeaders(asked, job.file.size, tag), body, follow);
  if (out.fault) return out;
  if (reply) return Judge(job, *reply, asked, std::move(out));
  const std::lock_guard lock(job.mutex);
  job.location.clear();
  out.fault = FaultOfNet(reply.error(), false);
  if (out.fault->kind != Fault::Kind::kStopped)
    out.fault->error.message = job.file.path + ": " + out.fault->error.message;
  return out;
}

Status DownloadWorker::Fetch(DownloadJob& job, ByteRange range) {
  const ByteRange claim = range;
  const ByteRange whole{0, job.file.size};
  int failures = 0;
  while (range.size() > 0) {
    if (job.bytes->undivided() && range != whole) return {};  // its claim is gone
    const Attempt attempt = FetchOnce(job, range);
    if (attempt.again) return {};  // Restart forgot the claim, too
    if (!attempt.fault) break;
    // A file that comes as a whole only begins again, so what has come is no progress.
    const bool progress = attempt.arrived > 0 && !job.bytes->undivided();
    if (progress) range.begin += attempt.arrived;
    failures = progress ? 1 : failures + 1;
    const Result<double> wait = NextTry(*attempt.fault, options_.retry, failures);
    if (wait && attempt.fault->wait && options_.note)
      options_.note(fmt::format("{}; waiting {:.0f} s", attempt.fault->error.message, *wait));
    if (wait && wait_(*wait)) continue;
    job.bytes->Release(claim);
    if (!wait) return tl::unexpected(wait.error());
    return Fail(Code::kCancelled, "stopped");
  }
  job.bytes->Release(claim);
  return {};
}

}  // namespace latte

#include "src/hub/pull.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "src/base/bytes_text.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/checkpoint/config/model_family.h"
#include "src/checkpoint/config/quant_config.h"
#include "src/checkpoint/gguf/gguf_types.h"
#include "src/http/client/url.h"
#include "src/hub/files/disk.h"
#include "src/hub/files/verified_blobs.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr size_t kMostListingBytes = 32 << 20;
constexpr auto kPause = std::chrono::milliseconds(100);

// Waits; false: interrupted.
bool Pause(double seconds, const PullEvents& events) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < until) {
    if (events.interrupted()) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

// One request for the listing.
Result<std::string> ListOnce(Http& http, const HubEnvironment& hub, const PullRequest& request,
                             std::optional<Fault>* fault) {
  std::string text;
  HttpBody body;
  body.begin = [](const HttpHead&) { return true; };
  body.write = [&](std::span<const std::byte> bytes) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return text.size() <= kMostListingBytes;
  };
  const std::string url = ListingUrl(hub, request.repo, request.revision);
  const auto reply = HubGet(http, hub, url, {"Accept: application/json"}, body);
  if (text.size() > kMostListingBytes)
    return Corrupt(fmt::format("{}: expected a listing of at most {} MiB, found more", url,
                               kMostListingBytes >> 20));
  if (!reply) {
    *fault = FaultOfNet(reply.error(), true);
  } else if (reply->head.status != 200) {
    const Result<HttpUrl> from = ParseWebUrl(reply->url);
    *fault = FaultOfStatus(
        reply->head,
        {request.repo, request.revision, "", from ? from->host : hub.endpoint, reply->redirected},
        hub);
  }
  return text;
}

Result<Listing> FetchListing(Http& http, const HubEnvironment& hub, const PullRequest& request,
                             const PullEvents& events) {
  for (int failures = 1;; ++failures) {
    std::optional<Fault> fault;
    LATTE_ASSIGN_OR_RETURN(const std::string text, ListOnce(http, hub, request, &fault));
    if (!fault) return ParseListing(text, hub.endpoint + ": listing of " + request.repo);
    LATTE_ASSIGN_OR_RETURN(const double wait, NextTry(*fault, request.download.retry, failures));
    if (request.download.note)
      request.download.note(fmt::format("{}; waiting {:.0f} s", fault->error.message, wait));
    if (!Pause(wait, events)) return Fail(Code::kCancelled, "stopped");
  }
}

PullPlan PlanOf(const Listing& listing, const SelectedFiles& selected, const RepoFolder& folder) {
  PullPlan out{listing.commit, folder.Snapshot(listing.commit), {}, 0, 0};
  if (!selected.gguf.empty()) out.path += "/" + selected.gguf;
  std::set<std::string_view> contents;
  for (const HubFile& file : selected.files) {
    const bool fetched = !contents.insert(file.oid).second || folder.HasBlob(file);
    const int64_t missing = fetched ? 0 : MissingBytes(folder.Blob(file), file.size);
    out.files.push_back({file, missing});
    out.bytes += file.size;
    out.missing += missing;
  }
  return out;
}

// Downloads the blobs that are missing.
Status Fetch(const HubEnvironment& hub, const PullRequest& request, const RepoFolder& folder,
             const Listing& listing, const std::vector<HubFile>& files, const HttpFactory& http,
             std::atomic<bool>& stop, const PullEvents& events) {
  int64_t total = 0;
  std::set<std::string_view> contents;
  for (const HubFile& file : files)
    if (contents.insert(file.oid).second) total += file.size;
  Download download({hub, request.repo, listing.commit}, folder, files, request.download, http,
                    stop);
  const Status status = download.Run([&] {
    events.progress(download.done(), total);
    if (events.interrupted()) stop.store(true);
  });
  if (status) return {};
  const int64_t kept = download.done();
  if (kept == 0) return status;
  return Fail(status.error().code,
              fmt::format("{}; {} of {} are kept: the same command continues",
                          status.error().message, BytesText(kept), BytesText(total)));
}

// Refuses a model that Latte does not run before its weights are downloaded. A repository without
// config.json, or with another kind of it, is none of its business.
Status CheckModel(const RepoFolder& folder, const std::vector<HubFile>& files,
                  const std::string& repo) {
  constexpr int64_t kMaxBytes = 16 << 20;
  const auto config = std::find_if(files.begin(), files.end(),
                                   [](const HubFile& file) { return file.path == "config.json"; });
  if (config == files.end()) return {};
  LATTE_ASSIGN_OR_RETURN(const std::string text, ReadFile(folder.Blob(*config), kMaxBytes));
  const Status known = Json::Parse(text, "config.json").and_then([](const Json& json) {
    return FindModelFamily(json).and_then([&](const ModelFamily*) -> Status {
      return ParseQuantConfig(json).map([](const QuantConfig&) {});
    });
  });
  if (known) return {};
  return Fail(known.error().code,
              fmt::format("{}: Latte does not run this model: {}. Its weights were not downloaded; "
                          "--any-model downloads them",
                          repo, known.error().message));
}

// Refuses a GGUF model whose name says that its types are not read.
Status CheckQuant(const SelectedFiles& selected, const std::string& repo) {
  const std::string_view why = WhyQuantIsRefused(selected.quant);
  if (why.empty()) return {};
  return Unsupported(fmt::format(
      "{}: Latte does not read the types of {}: {}. Nothing was downloaded; --any-model "
      "downloads it",
      repo, Printable(selected.quant), why));
}

Status FetchConfig(const HubEnvironment& hub, const PullRequest& request, const RepoFolder& folder,
                   const Listing& listing, std::vector<HubFile> files, const HttpFactory& http,
                   std::atomic<bool>& stop, PullEvents events) {
  std::erase_if(files, [](const HubFile& file) { return file.path != "config.json"; });
  events.progress = [](int64_t, int64_t) {};
  LATTE_RETURN_IF_ERROR(Fetch(hub, request, folder, listing, files, http, stop, events));
  return CheckModel(folder, files, request.repo);
}

}  // namespace

Result<PullPlan> Pull(const HubEnvironment& hub, PullRequest request, const HttpFactory& http,
                      std::atomic<bool>& stop, const PullEvents& events) {
  LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<Http> first, http());
  LATTE_ASSIGN_OR_RETURN(const Listing listing, FetchListing(*first, hub, request, events));
  LATTE_ASSIGN_OR_RETURN(const SelectedFiles selected,
                         SelectFiles(listing, request.selection, request.repo));
  const std::vector<HubFile>& files = selected.files;
  const RepoFolder folder(hub.cache, request.repo);
  if (request.dry_run) {
    PullPlan plan = PlanOf(listing, selected, folder);
    events.planned(plan);
    return plan;
  }
  if (!request.any_model) LATTE_RETURN_IF_ERROR(CheckQuant(selected, request.repo));
  LATTE_RETURN_IF_ERROR(folder.Create());
  bool told = false;
  LATTE_ASSIGN_OR_RETURN(const FileLock lock, FileLock::Take(folder.LockFile(), [&] {
                           if (!told && request.download.note)
                             request.download.note("another process downloads this model; waiting");
                           told = true;
                           return Pause(0.5, events);
                         }));
  if (const std::string others = folder.WhoElseWrites(); !others.empty() && request.download.note)
    request.download.note(others);
  VerifiedBlobs verified(folder);
  LATTE_RETURN_IF_ERROR(CheckBlobs(folder, files, &verified,
                                   {request.verify, events.checked, request.download.note}));
  request.download.complete = [&](const HubFile& file) { return verified.Add(file); };
  PullPlan plan = PlanOf(listing, selected, folder);
  events.planned(plan);
  LATTE_RETURN_IF_ERROR(CheckRoom(folder.path(), plan.missing));
  if (!request.any_model)
    LATTE_RETURN_IF_ERROR(FetchConfig(hub, request, folder, listing, files, http, stop, events));
  LATTE_RETURN_IF_ERROR(Fetch(hub, request, folder, listing, files, http, stop, events));
  LATTE_RETURN_IF_ERROR(folder.Publish(listing, files, request.revision));
  return plan;
}

}  // namespace latte

#include "src/hub/files/verified_blobs.h"

#include <set>
#include <sstream>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/files/owners.h"
#include "src/hub/files/digest.h"
#include "src/hub/files/disk.h"

namespace latte {
namespace {

constexpr std::string_view kVerifiedFirstLine = "latte-verified-1";
constexpr int64_t kMostVerifiedBytes = 16 << 20;

std::string TimeText(const timespec& time) {
  return fmt::format("{}.{:09}", time.tv_sec, time.tv_nsec);
}

// What changes with any change of the file; empty if it is no regular file.
std::string StampOf(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return "";
  return fmt::format("{} {} {} {}", info.st_ino, info.st_size, TimeText(info.st_mtim),
                     TimeText(info.st_ctim));
}

}  // namespace

VerifiedBlobs::VerifiedBlobs(const RepoFolder& folder)
    : folder_(folder), path_(fmt::format("{}/latte-verified-{}", folder.locks(), geteuid())) {
  struct stat info = {};
  if (lstat(path_.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || !WhoElseMayWrite(info).empty())
    return;
  const Result<std::string> text = ReadFile(path_, kMostVerifiedBytes);
  if (!text) return;
  std::istringstream lines(*text);
  std::string line;
  if (!std::getline(lines, line) || line != kVerifiedFirstLine) return;
  while (std::getline(lines, line))
    if (const size_t space = line.find(' '); space != std::string::npos)
      stamps_[line.substr(0, space)] = line.substr(space + 1);
}

bool VerifiedBlobs::Has(const HubFile& file) const {
  const std::lock_guard lock(mutex_);
  const auto noted = stamps_.find(file.oid);
  return noted != stamps_.end() && noted->second == StampOf(folder_.Blob(file));
}

Status VerifiedBlobs::Add(const HubFile& file) {
  if (file.size <= kMostUnremembered) return {};
  const std::lock_guard lock(mutex_);
  stamps_[file.oid] = StampOf(folder_.Blob(file));
  std::string text = std::string(kVerifiedFirstLine) + "\n";
  for (const auto& [oid, stamp] : stamps_) text += fmt::format("{} {}\n", oid, stamp);
  return WriteFile(path_, std::as_bytes(std::span(text)));
}

Status CheckBlobs(const RepoFolder& folder, const std::vector<HubFile>& files,
                  VerifiedBlobs* verified, const BlobCheck& check) {
  std::vector<const HubFile*> there;
  std::set<std::string_view> contents;
  int64_t total = 0;
  for (const HubFile& file : files) {
    if (!contents.insert(file.oid).second) continue;
    if (!folder.HasBlob(file)) {
      LATTE_RETURN_IF_ERROR(RemoveFile(folder.Blob(file)));
    } else if (check.all || !verified->Has(file)) {
      there.push_back(&file);
      total += file.size;
    }
  }
  const std::atomic<bool> never = false;
  int64_t done = 0;
  for (const HubFile* file : there) {
    const Status status = VerifyFile(folder.Blob(*file), *file, never, [&](int64_t bytes) {
      done += bytes;
      if (check.shown) check.shown(done, total);
    });
    if (status) {
      LATTE_RETURN_IF_ERROR(verified->Add(*file));
    } else if (status.error().code == Code::kCorrupt) {
      if (check.note) check.note(status.error().message + "; the copy in the cache is damaged");
      LATTE_RETURN_IF_ERROR(RemoveFile(folder.Blob(*file)));
    } else {
      return status;
    }
  }
  return {};
}

}  // namespace latte

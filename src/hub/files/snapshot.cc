#include "src/hub/files/snapshot.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/files/owners.h"
#include "src/checkpoint/hub_cache.h"
#include "src/hub/files/disk.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

// Text by which programs know a cache. Source: bford.info/cachedir.
constexpr std::string_view kCacheTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This file marks the folder of the Hugging Face cache; see https://bford.info/cachedir/\n";

Status WriteText(const std::string& path, std::string_view text) {
  return WriteFile(path, std::as_bytes(std::span(text)));
}

// Where a link in `snapshot` points for the blob of `file`: "../../blobs/<oid>", one ".." more per
// folder in the name.
std::string LinkTarget(const HubFile& file) {
  std::string out = "../../";
  for (const char c : file.path)
    if (c == '/') out += "../";
  return out + "blobs/" + file.oid;
}

// The folder part of a name below a folder; empty if it has none.
std::string FolderPart(const std::string& name) { return fs::path(name).parent_path().string(); }

// Puts the link in place in one step, whatever stands there.
Status Link(const std::string& target, const std::string& path) {
  std::error_code error;
  if (fs::read_symlink(path, error) == target) return {};
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  std::remove(temporary.c_str());
  if (symlink(target.c_str(), temporary.c_str()) != 0) return DiskError(temporary, errno);
  if (rename(temporary.c_str(), path.c_str()) == 0) return {};
  const int err = errno;
  std::remove(temporary.c_str());
  return DiskError(path, err);
}

}  // namespace

RepoFolder::RepoFolder(const std::string& cache, const std::string& repo)
    : cache_(cache),
      name_(RepoFolderName(repo)),
      path_(cache + "/" + name_),
      lock_folder_(cache + "/.locks/" + name_) {}

std::vector<std::string> RepoFolder::Folders() const {
  return {cache_,
          path_,
          path_ + "/blobs",
          path_ + "/snapshots",
          path_ + "/refs",
          lock_folder_,
          fs::path(lock_folder_).parent_path().string()};
}

Status RepoFolder::Create() const {
  struct stat info = {};
  if (lstat(path_.c_str(), &info) == 0 && S_ISLNK(info.st_mode) && info.st_uid != geteuid() &&
      info.st_uid != 0)
    return InvalidArgument(fmt::format(
        "{}: expected a folder or a link of user {}, found a link of user {}; remove it, or set "
        "HF_HUB_CACHE to a folder of your own",
        path_, geteuid(), info.st_uid));
  LATTE_RETURN_IF_ERROR(CreateFolders(path_));
  for (const char* folder : {"blobs", "snapshots", "refs"})
    LATTE_RETURN_IF_ERROR(CreateFoldersInside(path_, folder));
  LATTE_RETURN_IF_ERROR(CreateFoldersInside(cache_, ".locks/" + name_));
  for (const std::string& folder : Folders())
    if (stat(folder.c_str(), &info) == 0 && (info.st_mode & S_IWOTH) != 0)
      return InvalidArgument(
          fmt::format("{}: everybody may write into this folder of the cache (mode {:o}), so "
                      "nothing in it can be trusted; close it with chmod o-w after a look at what "
                      "is in it, or set HF_HUB_CACHE to a folder of your own",
                      folder, info.st_mode & 07777));
  const std::string tag = cache_ + "/CACHEDIR.TAG";
  return Exists(tag) ? Status() : WriteText(tag, kCacheTag);
}

std::string RepoFolder::WhoElseWrites() const {
  struct stat info = {};
  for (const std::string& folder : Folders())
    if (stat(folder.c_str(), &info) == 0)
      if (const std::string who = WhoElseMayWrite(info); !who.empty())
        return fmt::format(
            "{}: the cache may also be changed by {}: what is verified now may be "
            "other content later",
            folder, who);
  return "";
}

bool RepoFolder::HasBlob(const HubFile& file) const {
  struct stat info = {};
  return lstat(Blob(file).c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         info.st_size == file.size;
}

Status RepoFolder::Publish(const Listing& listing, const std::vector<HubFile>& files,
                           const std::string& revision) const {
  const std::string snapshot = Snapshot(listing.commit);
  for (const HubFile& file : files)
    if (!HasBlob(file)) return Internal(Blob(file) + ": expected this blob before its link");
  for (const HubFile& file : files) {
    LATTE_RETURN_IF_ERROR(
        CreateFoldersInside(path_ + "/snapshots", listing.commit + "/" + FolderPart(file.path)));
    LATTE_RETURN_IF_ERROR(Link(LinkTarget(file), snapshot + "/" + file.path));
  }
  LATTE_RETURN_IF_ERROR(SyncFolderOf(snapshot + "/x"));
  if (revision == listing.commit) return {};
  const std::string ref = path_ + "/refs/" + revision;
  LATTE_RETURN_IF_ERROR(CreateFoldersInside(path_ + "/refs", FolderPart(revision)));
  LATTE_RETURN_IF_ERROR(WriteText(ref, listing.commit));
  return SyncFolderOf(ref);
}

}  // namespace latte

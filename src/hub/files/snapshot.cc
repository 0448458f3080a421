#include "src/hub/files/snapshot.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.h"
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

// Puts the link in place in one step, whatever stands there.
Status Link(const std::string& target, const std::string& path) {
  std::error_code error;
  if (fs::read_symlink(path, error) == target) return {};
  LATTE_RETURN_IF_ERROR(CreateFolders(fs::path(path).parent_path().string()));
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
      path_(cache + "/" + RepoFolderName(repo)),
      lock_folder_(cache + "/.locks/" + RepoFolderName(repo)) {}

Status RepoFolder::Create() const {
  for (const std::string& folder :
       {path_ + "/blobs", path_ + "/snapshots", path_ + "/refs", lock_folder_})
    LATTE_RETURN_IF_ERROR(CreateFolders(folder));
  const std::string tag = cache_ + "/CACHEDIR.TAG";
  return Exists(tag) ? Status() : WriteText(tag, kCacheTag);
}

bool RepoFolder::HasBlob(const HubFile& file) const {
  struct stat info = {};
  return stat(Blob(file).c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size == file.size;
}

Status RepoFolder::Publish(const Listing& listing, const std::vector<HubFile>& files,
                           const std::string& revision) const {
  const std::string snapshot = Snapshot(listing.commit);
  for (const HubFile& file : files)
    if (!HasBlob(file)) return Internal(Blob(file) + ": expected this blob before its link");
  LATTE_RETURN_IF_ERROR(CreateFolders(snapshot));
  for (const HubFile& file : files)
    LATTE_RETURN_IF_ERROR(Link(LinkTarget(file), snapshot + "/" + file.path));
  LATTE_RETURN_IF_ERROR(SyncFolderOf(snapshot + "/x"));
  if (revision == listing.commit) return {};
  const std::string ref = path_ + "/refs/" + revision;
  LATTE_RETURN_IF_ERROR(CreateFolders(fs::path(ref).parent_path().string()));
  LATTE_RETURN_IF_ERROR(WriteText(ref, listing.commit));
  return SyncFolderOf(ref);
}

}  // namespace latte

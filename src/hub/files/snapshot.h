// The folders of one repository in the Hugging Face cache.
#pragma once

#include <string>
#include <vector>

#include "src/hub/repo/listing.h"

namespace latte {

class RepoFolder {
 public:
  // `cache`: HubCacheFolder(); `repo`: "org/name".
  RepoFolder(const std::string& cache, const std::string& repo);

  const std::string& path() const { return path_; }
  std::string Blob(const HubFile& file) const { return path_ + "/blobs/" + file.oid; }
  std::string Snapshot(const std::string& commit) const { return path_ + "/snapshots/" + commit; }
  const std::string& locks() const { return lock_folder_; }
  std::string LockFile() const { return lock_folder_ + "/latte-pull.lock"; }

  // Creates the folders, and CACHEDIR.TAG, by which backup programs know a cache. The cache and the
  // repository's folder may be links, of this user or root, to another disk. Errors: of DiskError;
  // kInvalidArgument for another link, or if everybody may write into a folder.
  [[nodiscard]] Status Create() const;

  // A line about another user or a group that may change what is in the folders; empty: there is
  // none.
  std::string WhoElseWrites() const;

  // Whether the blob is there with its length. Links are no blobs.
  bool HasBlob(const HubFile& file) const;

  // Links the files, whose blobs are there, into the snapshot of the commit, and makes
  // refs/<revision> name it; a revision that is the commit itself gets no ref. Errors: of DiskError
  // and CreateFoldersInside; kInternal without a blob.
  [[nodiscard]] Status Publish(const Listing& listing, const std::vector<HubFile>& files,
                               const std::string& revision) const;

 private:
  std::vector<std::string> Folders() const;

  std::string cache_;
  std::string name_;  // "models--org--name"
  std::string path_;
  std::string lock_folder_;
};

}  // namespace latte

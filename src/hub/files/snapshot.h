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
  std::string LockFile() const { return lock_folder_ + "/latte-pull.lock"; }

  // Creates the folders, and CACHEDIR.TAG, by which backup programs know a cache.
  // Errors: of DiskError.
  [[nodiscard]] Status Create() const;

  // Whether the blob is there with its length.
  bool HasBlob(const HubFile& file) const;

  // Links the files, whose blobs are there, into the snapshot of the commit, and makes refs/<revision> name
  // it; a revision that is the commit itself gets no ref. Errors: of DiskError; kInternal without a blob.
  [[nodiscard]] Status Publish(const Listing& listing, const std::vector<HubFile>& files,
                               const std::string& revision) const;

 private:
  std::string cache_;
  std::string path_;
  std::string lock_folder_;
};

}  // namespace latte

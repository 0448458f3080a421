// The large blobs of a repository that were compared with their checksums, so that later pulls need
// not read them again. A blob is identified by its inode, length and times: after any change, it is
// compared again.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "src/hub/files/snapshot.h"

namespace latte {

// Contents up to this size are compared in each pull: that takes some hundredths of a second.
inline constexpr int64_t kMostUnremembered = 16 << 20;

// Thread-safe.
class VerifiedBlobs {
 public:
  // Reads what earlier pulls of this user have noted. A file that others could write counts for
  // nothing.
  explicit VerifiedBlobs(const RepoFolder& folder);

  bool Has(const HubFile& file) const;
  // Notes the blob, and writes the file. Errors: of WriteFile.
  [[nodiscard]] Status Add(const HubFile& file);

 private:
  const RepoFolder& folder_;
  const std::string path_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> stamps_;  // by checksum
};

struct BlobCheck {
  bool all = false;                                        // also blobs that were compared before
  std::function<void(int64_t done, int64_t total)> shown;  // bytes that are read
  std::function<void(const std::string&)> note;            // a line for the user
};

// Compares the blobs of `files` that are there with their checksums, and removes those that differ
// and whatever else has their names. Errors: of VerifyFile but kCorrupt; of RemoveFile and
// VerifiedBlobs::Add.
[[nodiscard]] Status CheckBlobs(const RepoFolder& folder, const std::vector<HubFile>& files,
                                VerifiedBlobs* verified, const BlobCheck& check);

}  // namespace latte

// Prefixes on disk: one file per page (src/cache/prefix_file.h) in a folder of the model. A
// separate thread reads and writes, so no step waits for a disk: saves beyond its queue are dropped
// and counted, and a page that it cannot read is a miss.
//
// Processes may share a folder. Each knows its own files and the files that it found at its start;
// a file that another process has deleted is a miss.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "latte/status.h"

#include "src/cache/prefix_file.h"
#include "src/engine/prefix_disk/prefix_index.h"

namespace latte {

struct PrefixStoreOptions {
  std::string dir;                        // made with mode 0700 if it is not there
  int64_t max_bytes = int64_t{16} << 30;  // of files of all models; the oldest are deleted
  size_t max_queued = 64;                 // saves; and as many loads
};

struct PrefixStoreStats {
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t saved = 0;
  int64_t dropped_saves = 0;  // the queue was full
  int64_t failed_saves = 0;   // the disk was, or the page is larger than max_bytes
  int64_t loaded = 0;
  int64_t missed = 0;      // the file was gone or could not be read
  int64_t refused = 0;     // the file was corrupt or another's, and was deleted
  std::string last_error;  // of saves and loads; empty: none
};

// A load that has ended.
struct LoadedPage {
  uint64_t tag = 0;  // as given to Load
  PagePrefix prefix;
  Result<std::vector<std::byte>> bytes;  // an error: compute the page
};

// Thread-safe.
class PrefixStore {
 public:
  // `on_loaded` is called on the store's thread whenever TakeLoaded has something new; it must not
  // wait for the store. It may be empty. Errors: of OpenCacheFolder.
  [[nodiscard]] static Result<std::unique_ptr<PrefixStore>> Open(const PrefixStoreOptions& options,
                                                                 PrefixFileOwner owner,
                                                                 std::function<void()> on_loaded);
  // Drops what is queued: call Flush first to keep it.
  ~PrefixStore();
  PrefixStore(const PrefixStore&) = delete;
  PrefixStore& operator=(const PrefixStore&) = delete;

  // Whether there is a file of that name; looks at no disk. Cost: a hash of the tokens.
  bool Contains(const PagePrefix& prefix) const;

  // How many pages in a row, from page `first` of the prompt on, have files; looks at no disk.
  // Whole pages of `tokens` count. Cost: a hash of the tokens up to the first that is unknown.
  int64_t KnownPages(std::string_view salt, std::span<const int32_t> tokens, int64_t first) const;

  // Writes the page if it is not there yet, later. False: the queue is full, the page is dropped.
  bool Save(PagePrefix prefix, std::vector<std::byte> bytes);

  // Whether half of the queue of saves is free: the rest is for pages that must be saved now.
  bool has_room() const;

  // Reads the page, later but before what is to be saved; TakeLoaded tells. False: `max_queued`
  // loads are under way or not taken.
  bool Load(PagePrefix prefix, uint64_t tag);

  // Loads that ended since the last call, in the order of their calls.
  std::vector<LoadedPage> TakeLoaded();

  // Waits until all that was queued is done.
  void Flush();

  PrefixStoreStats Stats() const;

 private:
  struct SaveJob {
    PagePrefix prefix;
    std::vector<std::byte> bytes;
  };
  struct LoadJob {
    PagePrefix prefix;
    uint64_t tag;
  };

  PrefixStore(const PrefixStoreOptions& options, PrefixFileOwner owner,
              std::function<void()> on_loaded);
  // Called on the store's thread:
  void Run();
  bool RunNext();  // false: it is time to end
  void LoadOrMiss(LoadJob job);
  void RunLoad(LoadJob job);
  void SaveOrFail(const SaveJob& job);
  void RunSave(const SaveJob& job);
  Result<std::vector<std::byte>> ReadPage(const std::string& name, const PagePrefix& prefix);
  // The page was used, and with it those before it: they go later, as it is worth nothing alone.
  void TouchPath(const PagePrefix& prefix);
  bool MakeRoom(int64_t bytes);  // false: there will never be so much
  // Of any thread:
  std::string NameOf(const PagePrefix& prefix) const;
  std::string PathOf(const std::string& name) const { return options_.dir + "/" + name; }

  const PrefixStoreOptions options_;
  const PrefixFileOwner owner_;
  const std::string model_;  // name of the model's folder
  const std::function<void()> on_loaded_;

  mutable std::mutex mutex_;  // guards all that follows but the thread
  std::condition_variable work_;
  std::condition_variable idle_;
  std::deque<SaveJob> saves_;
  std::deque<LoadJob> loads_;
  std::vector<LoadedPage> loaded_;
  size_t open_loads_ = 0;  // queued, under way or not taken
  bool busy_ = true;
  bool stop_ = false;
  PrefixIndex index_;
  PrefixStoreStats stats_;

  std::thread thread_;
};

}  // namespace latte

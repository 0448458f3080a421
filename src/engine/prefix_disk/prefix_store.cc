#include "src/engine/prefix_disk/prefix_store.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/limits/out_of_memory.h"
#include "src/base/strings.h"
#include "src/engine/prefix_disk/cache_folder.h"

namespace latte {
namespace {

std::string HexOf(const ModelKey& key) {
  return InHex({reinterpret_cast<const char*>(key.data()), key.size()});
}

// `ulimit -f` becomes an error of write, in this thread alone: what the host does with the signal
// is its own business.
void BlockFileLimit() {
  sigset_t limit;
  sigemptyset(&limit);
  sigaddset(&limit, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &limit, nullptr);
}

}  // namespace

Result<std::unique_ptr<PrefixStore>> PrefixStore::Open(const PrefixStoreOptions& options,
                                                       PrefixFileOwner owner,
                                                       std::function<void()> on_loaded) {
  LATTE_RETURN_IF_ERROR(OpenCacheFolder(options.dir, HexOf(owner.key)));
  std::unique_ptr<PrefixStore> store(
      new PrefixStore(options, std::move(owner), std::move(on_loaded)));
  try {
    store->thread_ = std::thread([&self = *store] { self.Run(); });
  } catch (const std::system_error& thrown) {
    return tl::unexpected<Error>(ErrorOf(thrown));
  }
  return store;
}

PrefixStore::PrefixStore(const PrefixStoreOptions& options, PrefixFileOwner owner,
                         std::function<void()> on_loaded)
    : options_(options),
      owner_(std::move(owner)),
      model_(HexOf(owner_.key)),
      on_loaded_(std::move(on_loaded)) {
  for (const CachedFile& file : ScanCacheFolder(options_.dir)) index_.Add(file.name, file.bytes);
}

PrefixStore::~PrefixStore() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::string PrefixStore::NameOf(const PagePrefix& prefix) const {
  return model_ + "/" + PrefixFileName(owner_, prefix);
}

void PrefixStore::TouchPath(const PagePrefix& prefix) {
  PrefixFileNames names(owner_, prefix.salt);
  const auto page = static_cast<size_t>(owner_.spec.page_tokens);
  std::vector<std::string> path;
  for (size_t at = 0; at + page <= prefix.tokens.size(); at += page)
    path.push_back(model_ + "/" + names.Next(std::span(prefix.tokens).subspan(at, page)));
  std::ranges::reverse(path);
  const std::lock_guard lock(mutex_);
  for (const std::string& name : path) index_.Touch(name);
}

bool PrefixStore::Contains(const PagePrefix& prefix) const {
  const std::string name = NameOf(prefix);
  const std::lock_guard lock(mutex_);
  return index_.Contains(name);
}

int64_t PrefixStore::KnownPages(std::string_view salt, std::span<const int32_t> tokens,
                                int64_t first) const {
  PrefixFileNames names(owner_, salt);
  const auto page = static_cast<size_t>(owner_.spec.page_tokens);
  int64_t at = 0;
  for (; tokens.size() >= page; ++at, tokens = tokens.subspan(page)) {
    const std::string name = model_ + "/" + names.Next(tokens.first(page));
    if (at < first) continue;
    const std::lock_guard lock(mutex_);
    if (!index_.Contains(name)) break;
  }
  return at > first ? at - first : 0;
}

bool PrefixStore::Save(PagePrefix prefix, std::vector<std::byte> bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (saves_.size() >= options_.max_queued) {
      ++stats_.dropped_saves;
      return false;
    }
    saves_.push_back({std::move(prefix), std::move(bytes)});
  }
  work_.notify_one();
  return true;
}

bool PrefixStore::has_room() const {
  const std::lock_guard lock(mutex_);
  return saves_.size() < options_.max_queued / 2;
}

bool PrefixStore::Load(PagePrefix prefix, uint64_t tag) {
  {
    const std::lock_guard lock(mutex_);
    if (open_loads_ >= options_.max_queued) return false;
    loaded_.reserve(open_loads_ + 1);  // its thread then needs no memory to say that it has none
    loads_.push_back({std::move(prefix), tag});
    ++open_loads_;
  }
  work_.notify_one();
  return true;
}

std::vector<LoadedPage> PrefixStore::TakeLoaded() {
  const std::lock_guard lock(mutex_);
  open_loads_ -= loaded_.size();
  std::vector<LoadedPage> out(std::make_move_iterator(loaded_.begin()),
                              std::make_move_iterator(loaded_.end()));
  loaded_.clear();
  return out;
}

void PrefixStore::Flush() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return saves_.empty() && loads_.empty() && !busy_; });
}

PrefixStoreStats PrefixStore::Stats() const {
  const std::lock_guard lock(mutex_);
  PrefixStoreStats stats = stats_;
  stats.files = index_.files();
  stats.bytes = index_.bytes();
  return stats;
}

void PrefixStore::Run() {
  BlockFileLimit();
  // The folder may be larger than it should be now. Without memory to tidy up, the next save does.
  static_cast<void>(CatchExhaustion([this]() -> Result<bool> { return MakeRoom(0); }));
  while (RunNext()) {
  }
}

bool PrefixStore::RunNext() {
  std::optional<LoadJob> load;
  std::optional<SaveJob> save;
  {
    std::unique_lock lock(mutex_);
    busy_ = false;
    if (saves_.empty() && loads_.empty()) idle_.notify_all();
    work_.wait(lock, [&] { return stop_ || !saves_.empty() || !loads_.empty(); });
    if (stop_) return false;
    busy_ = true;
    if (!loads_.empty()) {  // first: a request waits for it
      load = std::move(loads_.front());
      loads_.pop_front();
    } else {
      save = std::move(saves_.front());
      saves_.pop_front();
    }
  }
  if (load) LoadOrMiss(std::move(*load));
  if (save) SaveOrFail(*save);
  return true;
}

// Where there is no memory for it, the page is a miss: the request that waits for it goes on.
void PrefixStore::LoadOrMiss(LoadJob job) {
  const uint64_t tag = job.tag;
  const Status loaded = CatchExhaustion([&]() -> Status {
    RunLoad(std::move(job));
    return {};
  });
  if (loaded) return;
  {
    const std::lock_guard lock(mutex_);
    ++stats_.missed;
    loaded_.push_back({tag, {}, tl::unexpected<Error>(Error{Code::kExhausted, {}})});
  }
  if (on_loaded_) on_loaded_();
}

void PrefixStore::SaveOrFail(const SaveJob& job) {
  const Status saved = CatchExhaustion([&]() -> Status {
    RunSave(job);
    return {};
  });
  if (saved) return;
  const std::lock_guard lock(mutex_);
  ++stats_.failed_saves;
}

void PrefixStore::RunLoad(LoadJob job) {
  const std::string name = NameOf(job.prefix);
  Result<std::vector<std::byte>> bytes = ReadPage(name, job.prefix);
  const bool refused = !bytes && bytes.error().code == Code::kCorrupt;
  if (refused) unlink(PathOf(name).c_str());
  if (bytes) {
    utimensat(AT_FDCWD, PathOf(name).c_str(), nullptr, 0);  // a restart orders files by that
    TouchPath(job.prefix);
  }
  {
    const std::lock_guard lock(mutex_);
    if (bytes) {
      ++stats_.loaded;
    } else {
      index_.Remove(name);
      ++(refused ? stats_.refused : stats_.missed);
      stats_.last_error = ToString(bytes.error());
    }
    loaded_.push_back({job.tag, std::move(job.prefix), std::move(bytes)});
  }
  if (on_loaded_) on_loaded_();
}

Result<std::vector<std::byte>> PrefixStore::ReadPage(const std::string& name,
                                                     const PagePrefix& prefix) {
  const std::string path = PathOf(name);
  // More than any file of this prefix: what is larger is not one.
  const int64_t most = owner_.spec.bytes_per_page() + std::ssize(prefix.tokens) * 4 +
                       std::ssize(prefix.salt) + (int64_t{1} << 20);
  LATTE_ASSIGN_OR_RETURN(const std::string file, ReadFile(path, most));
  const auto bytes = DecodePrefixFile(owner_, prefix, std::as_bytes(std::span(file)));
  if (!bytes) return Corrupt(fmt::format("{}: {}", path, bytes.error().message));
  return std::vector(bytes->begin(), bytes->end());
}

void PrefixStore::RunSave(const SaveJob& job) {
  const std::string name = NameOf(job.prefix);
  if (Contains(job.prefix)) return TouchPath(job.prefix);
  const std::vector<std::byte> file = EncodePrefixFile(owner_, job.prefix, job.bytes);
  Status written = Exhausted(fmt::format("{}: {} bytes, expected at most {}", PathOf(name),
                                         file.size(), options_.max_bytes));
  // Not forced to the disk: a file that a power failure cuts short is refused.
  if (MakeRoom(std::ssize(file))) written = WriteFile(PathOf(name), file);
  const std::lock_guard lock(mutex_);
  if (written) {
    index_.Add(name, std::ssize(file));
    ++stats_.saved;
  } else {
    ++stats_.failed_saves;
    stats_.last_error = ToString(written.error());
  }
}

bool PrefixStore::MakeRoom(int64_t bytes) {
  if (bytes > options_.max_bytes) return false;
  for (;;) {
    std::string oldest;
    {
      const std::lock_guard lock(mutex_);
      if (index_.files() == 0 || index_.bytes() + bytes <= options_.max_bytes) return true;
      oldest = index_.Oldest();
      index_.Remove(oldest);
    }
    RemoveCached(PathOf(oldest));
  }
}

}  // namespace latte

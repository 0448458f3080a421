#include "src/engine/prefix_disk/prefix_store.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <semaphore>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/engine/prefix_disk/cache_folder.h"
#include "tests/support/scratch_dir.h"

namespace latte::prefix_store_test {
namespace {

namespace fs = std::filesystem;
using testing_support::ScratchDir;
using Bytes = std::vector<std::byte>;

PrefixFileOwner Owner(uint8_t model = 1) {
  return {{std::byte{model}},
          {{{StreamId::kLatent, 20, DType::kBF16}, {StreamId::kIndexer, 3, DType::kF32}}, 2, 2}};
}
PagePrefix Prefix(int32_t last) { return {"salt", {1, last}}; }
Bytes Page(int value) {
  return Bytes(static_cast<size_t>(Owner().spec.bytes_per_page()), static_cast<std::byte>(value));
}
int64_t FileBytes() { return std::ssize(EncodePrefixFile(Owner(), Prefix(2), Page(0))); }
std::string PathOf(const std::string& dir, const PagePrefix& prefix) {
  return dir + "/01" + std::string(30, '0') + "/" + PrefixFileName(Owner(), prefix);
}

class PrefixStoreTest : public testing::Test {
 protected:
  // Ends the store that was open before.
  PrefixStore& Open(int64_t max_bytes = 1 << 30, uint8_t model = 1) {
    store_.reset();
    auto store = PrefixStore::Open({.dir = dir_, .max_bytes = max_bytes}, Owner(model), {});
    EXPECT_TRUE(store) << store.error().message;
    store_ = std::move(*store);
    return *store_;
  }
  void SaveAll(PrefixStore& store, std::initializer_list<int32_t> pages) {
    for (const int32_t page : pages) {
      EXPECT_TRUE(store.Save(Prefix(page), Page(page)));
      store.Flush();
    }
  }
  static Result<Bytes> LoadNow(PrefixStore& store, const PagePrefix& prefix) {
    EXPECT_TRUE(store.Load(prefix, 42));
    store.Flush();
    std::vector<LoadedPage> loaded = store.TakeLoaded();
    EXPECT_EQ(loaded.size(), 1u);
    EXPECT_EQ(loaded[0].tag, 42u);
    EXPECT_EQ(loaded[0].prefix, prefix);
    return std::move(loaded[0].bytes);
  }

  ScratchDir scratch_;
  std::string dir_ = scratch_.File("parent/cache");
  std::unique_ptr<PrefixStore> store_;
};

TEST_F(PrefixStoreTest, PagesComeBackAndSurviveARestart) {
  PrefixStore& store = Open();
  EXPECT_FALSE(store.Contains(Prefix(2)));
  SaveAll(store, {2, 3});
  EXPECT_TRUE(store.Contains(Prefix(2)));
  EXPECT_EQ(LoadNow(store, Prefix(2)), Page(2));

  PrefixStore& again = Open();
  EXPECT_TRUE(again.Contains(Prefix(3)));
  EXPECT_FALSE(again.Contains(Prefix(4)));
  EXPECT_EQ(LoadNow(again, Prefix(3)), Page(3));
  EXPECT_EQ(again.Stats().files, 2);
  EXPECT_EQ(again.Stats().bytes, 2 * FileBytes());
  EXPECT_EQ(again.Stats().loaded, 1);
}

TEST_F(PrefixStoreTest, KnownPagesCountsARowFromAPageOn) {
  PrefixStore& store = Open();
  const std::vector<int32_t> tokens{1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (const size_t pages : {1, 2, 4})
    store.Save({"salt", {tokens.begin(), tokens.begin() + static_cast<int64_t>(2 * pages)}},
               Page(1));
  store.Flush();
  EXPECT_EQ(store.KnownPages("salt", tokens, 0), 2);
  EXPECT_EQ(store.KnownPages("salt", tokens, 1), 1);
  EXPECT_EQ(store.KnownPages("salt", tokens, 2), 0);
  EXPECT_EQ(store.KnownPages("salt", tokens, 3), 1);
  EXPECT_EQ(store.KnownPages("salt", tokens, 9), 0);
  EXPECT_EQ(store.KnownPages("salt", std::span(tokens).first(3), 0), 1);
  EXPECT_EQ(store.KnownPages("tlas", tokens, 0), 0);
}

TEST_F(PrefixStoreTest, OtherModelsAndSaltsFindNothing) {
  SaveAll(Open(), {2});
  EXPECT_FALSE(store_->Contains({"other", {1, 2}}));
  PrefixStore& other = Open(1 << 30, /*model=*/2);
  EXPECT_FALSE(other.Contains(Prefix(2)));
  EXPECT_EQ(other.Stats().files, 1);  // all models count
  EXPECT_EQ(LoadNow(other, Prefix(2)).error().code, Code::kNotFound);
}

TEST_F(PrefixStoreTest, ByteChangedAnywhereIsAMissAndTheFileGoes) {
  const int64_t size = FileBytes();
  // Magic, version, sizes, key, layout, tokens, checksum, page, last byte.
  for (const int64_t at : {int64_t{0}, int64_t{8}, int64_t{12}, int64_t{33}, int64_t{41},
                           int64_t{60}, size - 260, size - 250, size - 100, size - 1}) {
    PrefixStore& store = Open();
    SaveAll(store, {2});
    {
      std::fstream file(PathOf(dir_, Prefix(2)), std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(at);
      const int byte = file.get();
      file.seekp(at);
      file.put(static_cast<char>(byte ^ 4));
      ASSERT_TRUE(file.good());
    }
    EXPECT_EQ(LoadNow(store, Prefix(2)).error().code, Code::kCorrupt) << "byte " << at;
    EXPECT_FALSE(store.Contains(Prefix(2)));
    EXPECT_FALSE(Exists(PathOf(dir_, Prefix(2))));
    EXPECT_EQ(store.Stats().refused, 1);
    EXPECT_NE(store.Stats().last_error.find(PathOf(dir_, Prefix(2))), std::string::npos);
    SaveAll(store, {2});  // computed again
    EXPECT_EQ(LoadNow(store, Prefix(2)), Page(2));
  }
}

TEST_F(PrefixStoreTest, WholeFileOfOtherTokensIsRefused) {
  PrefixStore& store = Open();
  SaveAll(store, {2, 3});
  fs::copy_file(PathOf(dir_, Prefix(3)), PathOf(dir_, Prefix(2)),
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(LoadNow(store, Prefix(2)).error().code, Code::kCorrupt);
}

TEST_F(PrefixStoreTest, LargeFileUnderOurNameIsRefusedUnread) {
  PrefixStore& store = Open();
  SaveAll(store, {2});
  fs::resize_file(PathOf(dir_, Prefix(2)), uintmax_t{1} << 40);  // a hole
  EXPECT_EQ(LoadNow(store, Prefix(2)).error().code, Code::kCorrupt);
}

// Nothing is read through a pipe, a folder or a link that leads to one, and nothing waits for them.
TEST_F(PrefixStoreTest, WhatIsNoFileUnderOurNameIsAMiss) {
  const std::string fifo = scratch_.File("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const std::string path = PathOf(dir_, Prefix(2));
  const std::function<void()> others[] = {
      [&] { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); },
      [&] { fs::create_directory(path); },
      [&] { fs::create_symlink(fifo, path); },
      [&] { fs::create_symlink("/dev/zero", path); },
      [&] { fs::create_symlink(dir_, path); },
      [&] { fs::create_symlink(path, path); },
      [&] { fs::create_symlink("nowhere", path); },
  };
  for (const auto& other : others) {
    PrefixStore& store = Open();
    SaveAll(store, {2, 3});
    fs::remove_all(path);
    other();
    EXPECT_FALSE(LoadNow(store, Prefix(2)));
    EXPECT_FALSE(store.Contains(Prefix(2)));
    EXPECT_EQ(LoadNow(store, Prefix(3)), Page(3));
    Open();  // finds them at its start
    fs::remove_all(path);
  }
  EXPECT_TRUE(Exists(dir_));
}

TEST_F(PrefixStoreTest, FileThatAnotherDeletedIsAMiss) {
  PrefixStore& store = Open();
  SaveAll(store, {2});
  fs::remove(PathOf(dir_, Prefix(2)));
  EXPECT_TRUE(store.Contains(Prefix(2)));
  EXPECT_EQ(LoadNow(store, Prefix(2)).error().code, Code::kNotFound);
  EXPECT_FALSE(store.Contains(Prefix(2)));
  EXPECT_EQ(store.Stats().missed, 1);
}

TEST_F(PrefixStoreTest, DiskThatTakesNothingCostsOnlyTheSaves) {
  PrefixStore& store = Open();
  SaveAll(store, {2});
  fs::remove_all(dir_);
  std::ofstream(dir_) << "a file";
  SaveAll(store, {3});
  EXPECT_FALSE(store.Contains(Prefix(3)));
  EXPECT_EQ(store.Stats().failed_saves, 1);
  EXPECT_NE(store.Stats().last_error, "");
  EXPECT_FALSE(LoadNow(store, Prefix(2)));
}

TEST_F(PrefixStoreTest, LeastRecentlyUsedFilesGoWhenItIsFull) {
  PrefixStore& store = Open(3 * FileBytes());
  SaveAll(store, {2, 3, 4});
  EXPECT_TRUE(LoadNow(store, Prefix(2)));
  SaveAll(store, {5});
  EXPECT_TRUE(store.Contains(Prefix(2)));
  EXPECT_FALSE(store.Contains(Prefix(3)));
  EXPECT_FALSE(Exists(PathOf(dir_, Prefix(3))));
  EXPECT_EQ(store.Stats().bytes, 3 * FileBytes());
  SaveAll(store, {4});  // known: used, not written
  EXPECT_EQ(store.Stats().saved, 4);
  SaveAll(store, {6, 7});
  EXPECT_TRUE(store.Contains(Prefix(4)));
}

TEST_F(PrefixStoreTest, UseIsRememberedOverARestartAndASmallerFolderIsTrimmed) {
  SaveAll(Open(), {2, 3, 4});
  const auto now = fs::file_time_type::clock::now();
  for (const int32_t page : {2, 3, 4})
    fs::last_write_time(PathOf(dir_, Prefix(page)), now - std::chrono::hours(10 - page));
  EXPECT_TRUE(LoadNow(*store_, Prefix(2)));
  PrefixStore& store = Open(FileBytes());
  store.Flush();
  EXPECT_TRUE(store.Contains(Prefix(2)));
  EXPECT_EQ(store.Stats().files, 1);
}

TEST_F(PrefixStoreTest, PagesBeforeOneThatIsUsedGoLater) {
  PrefixStore& store = Open(3 * FileBytes() + 20);
  store.Save({"salt", {1, 2}}, Page(1));
  store.Save({"salt", {8, 9}}, Page(3));
  store.Save({"salt", {1, 2, 3, 4}}, Page(2));
  store.Flush();
  EXPECT_TRUE(LoadNow(store, {"salt", {1, 2, 3, 4}}));
  SaveAll(store, {7});
  EXPECT_FALSE(store.Contains({"salt", {8, 9}}));
  SaveAll(store, {8});
  EXPECT_FALSE(store.Contains({"salt", {1, 2, 3, 4}}));
  EXPECT_TRUE(store.Contains({"salt", {1, 2}}));
}

TEST_F(PrefixStoreTest, PageLargerThanTheFolderMayBeIsNotSaved) {
  PrefixStore& store = Open(FileBytes() - 1);
  SaveAll(store, {2});
  EXPECT_FALSE(store.Contains(Prefix(2)));
  EXPECT_EQ(store.Stats().failed_saves, 1);
  EXPECT_TRUE(fs::is_empty(fs::path(PathOf(dir_, Prefix(2))).parent_path()));
}

TEST_F(PrefixStoreTest, LeftoversOfCutShortSavesGoAndForeignFilesStay) {
  SaveAll(Open(), {2});
  const fs::path model = fs::path(PathOf(dir_, Prefix(2))).parent_path();
  const std::string leftover = PathOf(dir_, Prefix(3)) + ".123.tmp";
  const std::vector<std::string> foreign = {dir_ + "/notes", (model / "notes.tmp").string(),
                                            PathOf(dir_, Prefix(3)) + ".txt"};
  std::ofstream(leftover) << "half";
  for (const std::string& path : foreign) std::ofstream(path) << "mine";
  fs::create_directory(PathOf(dir_, Prefix(4)));  // a folder under a name of ours
  PrefixStore& store = Open(/*max_bytes=*/0);
  store.Flush();
  EXPECT_FALSE(Exists(leftover));
  EXPECT_FALSE(Exists(PathOf(dir_, Prefix(2))));
  for (const std::string& path : foreign) EXPECT_TRUE(Exists(path)) << path;
  EXPECT_EQ(store.Stats().files, 0);
}

// A folder that another program also uses, for files named by their hashes.
TEST_F(PrefixStoreTest, StrangersWithNamesLikeOursAreNotEvicted) {
  SaveAll(Open(), {2});
  const fs::path model = fs::path(PathOf(dir_, Prefix(2))).parent_path();
  const std::string digits(32, 'a');
  const std::vector<std::string> foreign = {dir_ + "/" + digits + "/" + digits,
                                            (model / digits).string(),
                                            (model / std::string(32, '0')).string()};
  fs::create_directory(dir_ + "/" + digits);
  for (const std::string& path : foreign) std::ofstream(path) << "mine, and long enough";
  PrefixStore& store = Open(/*max_bytes=*/0);
  store.Flush();
  EXPECT_FALSE(Exists(PathOf(dir_, Prefix(2))));
  for (const std::string& path : foreign) EXPECT_TRUE(Exists(path)) << path;
  EXPECT_EQ(store.Stats().files, 0);
}

// A host that has not heard of SIGXFSZ. Exits with the number of saves that failed.
void SaveUnderALimit(const std::string& dir) {
  signal(SIGXFSZ, SIG_DFL);
  const rlimit limit = {100, 100};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(77);
  const auto store = PrefixStore::Open({.dir = dir}, Owner(), {});
  if (!store) _exit(78);
  (*store)->Save(Prefix(2), Page(1));
  (*store)->Flush();
  _exit(static_cast<int>((*store)->Stats().failed_saves));
}

TEST(PrefixStoreDeathTest, ALimitOnTheSizeOfFilesIsAFailedSave) {
  const ScratchDir dir;
  EXPECT_EXIT(SaveUnderALimit(dir.File("cache")), testing::ExitedWithCode(1), "");
  for (const auto& entry : fs::recursive_directory_iterator(dir.File("cache")))
    EXPECT_FALSE(entry.is_regular_file()) << entry.path();
}

TEST_F(PrefixStoreTest, SavesUnderWayAreNoLeftovers) {
  SaveAll(Open(), {2});
  const std::string saving = PathOf(dir_, Prefix(3)) + ".latte-123.tmp";
  std::ofstream(saving) << "half";
  const int fd = open(saving.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  Open();
  EXPECT_TRUE(Exists(saving));
  close(fd);
  Open();
  EXPECT_FALSE(Exists(saving));
}

TEST_F(PrefixStoreTest, FullQueueDropsSavesAndRefusesLoads) {
  SaveAll(Open(), {2});
  store_.reset();
  std::binary_semaphore in_callback(0), go_on(0);
  std::atomic<bool> hold = true;
  auto store = PrefixStore::Open({.dir = dir_, .max_queued = 2}, Owner(), [&] {
    if (!hold.exchange(false)) return;
    in_callback.release();
    go_on.acquire();
  });
  ASSERT_TRUE(store);
  EXPECT_TRUE((*store)->Load(Prefix(2), 1));
  // The store's thread waits from here on.
  ASSERT_TRUE(in_callback.try_acquire_for(std::chrono::seconds(30)));
  EXPECT_TRUE((*store)->Load(Prefix(9), 2));
  EXPECT_FALSE((*store)->Load(Prefix(2), 3));
  EXPECT_TRUE((*store)->Save(Prefix(3), Page(3)));
  EXPECT_TRUE((*store)->Save(Prefix(4), Page(4)));
  EXPECT_FALSE((*store)->Save(Prefix(5), Page(5)));
  EXPECT_EQ((*store)->Stats().dropped_saves, 1);
  go_on.release();
  (*store)->Flush();
  EXPECT_TRUE((*store)->Contains(Prefix(4)));
  EXPECT_FALSE((*store)->Contains(Prefix(5)));
  EXPECT_FALSE((*store)->Load(Prefix(2), 4));  // what was not taken counts
  EXPECT_EQ((*store)->TakeLoaded().size(), 2u);
  EXPECT_TRUE((*store)->Load(Prefix(2), 5));
}

TEST_F(PrefixStoreTest, ThreadsMaySaveAndLoadAtOnce) {
  std::atomic<int> called = 0;
  auto store = PrefixStore::Open({.dir = dir_, .max_bytes = 20 * FileBytes(), .max_queued = 1000},
                                 Owner(), [&] { ++called; });
  ASSERT_TRUE(store);
  std::atomic<int> taken = 0, wrong = 0;
  const auto work = [&](int32_t thread) {
    for (int32_t i = 0; i < 100; ++i) {
      const int32_t page = (i * 7 + thread) % 30;
      (*store)->Save(Prefix(page), Page(page));
      EXPECT_TRUE((*store)->Load(Prefix(page), static_cast<uint64_t>(page)));
      (*store)->Contains(Prefix(page));
      for (const LoadedPage& loaded : (*store)->TakeLoaded()) {
        ++taken;
        if (loaded.bytes && *loaded.bytes != Page(static_cast<int>(loaded.tag))) ++wrong;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int32_t t = 0; t < 4; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  (*store)->Flush();
  EXPECT_EQ(taken + static_cast<int>((*store)->TakeLoaded().size()), 400);
  EXPECT_EQ(called, 400);
  EXPECT_EQ(wrong, 0);
  EXPECT_LE((*store)->Stats().bytes, 20 * FileBytes());
  EXPECT_EQ((*store)->Stats().refused, 0);
}

TEST_F(PrefixStoreTest, EndingWithWorkQueuedDoesNotHang) {
  PrefixStore& store = Open();
  for (int32_t page = 0; page < 60; ++page) store.Save(Prefix(page), Page(page));
  store_.reset();
}

TEST(CacheFolder, IsMadeForItsOwnerAlone) {
  const ScratchDir scratch;
  const std::string dir = scratch.File("a/b");
  ASSERT_TRUE(OpenCacheFolder(dir, "model"));
  for (const std::string& path : {dir, dir + "/model"}) {
    struct stat st = {};
    ASSERT_EQ(stat(path.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0700u) << path;
  }
  EXPECT_TRUE(OpenCacheFolder(dir, "model"));
}

TEST(CacheFolder, OpenToOthersIsRefused) {
  const ScratchDir scratch;
  const std::string dir = scratch.File("cache");
  ASSERT_TRUE(OpenCacheFolder(dir, "model"));
  for (const mode_t mode : {0770u, 0702u, 01777u}) {
    ASSERT_EQ(chmod(dir.c_str(), mode), 0);
    const Status refused = OpenCacheFolder(dir, "model");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_NE(refused.error().message.find("chmod 700"), std::string::npos);
  }
  // Others may look at the names of models, not at what is in their folders.
  ASSERT_EQ(chmod(dir.c_str(), 0755), 0);
  EXPECT_TRUE(OpenCacheFolder(dir, "model"));
  ASSERT_EQ(chmod((dir + "/model").c_str(), 0750), 0);
  EXPECT_FALSE(OpenCacheFolder(dir, "model"));
}

TEST(CacheFolder, AnotherUsersIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  const ScratchDir scratch;
  const std::string dir = scratch.File("cache");
  ASSERT_EQ(mkdir(dir.c_str(), 0700), 0);
  ASSERT_EQ(chown(dir.c_str(), 12345, static_cast<gid_t>(-1)), 0);
  const Status refused = OpenCacheFolder(dir, "model");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("belongs to user 12345"), std::string::npos);
}

TEST(CacheFolder, FilesComeInTheOrderOfTheirUse) {
  const ScratchDir scratch;
  const auto now = fs::file_time_type::clock::now();
  std::vector<std::string> expected(20);
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string model(32, i % 2 == 0 ? 'a' : 'b');
    ASSERT_TRUE(OpenCacheFolder(scratch.path(), model));
    const std::string name = fmt::format("{}/{:032x}", model, i);
    std::ofstream(scratch.File(name)) << std::string(i, 'x');
    const size_t place = i * 7 % expected.size();
    fs::last_write_time(scratch.File(name), now + std::chrono::seconds(place));
    expected[place] = name;
  }
  const std::vector<CachedFile> files = ScanCacheFolder(scratch.path());
  ASSERT_EQ(files.size(), expected.size());
  for (size_t i = 0; i < files.size(); ++i) EXPECT_EQ(files[i].name, expected[i]);
  EXPECT_EQ(files[14].bytes, 2);
}

TEST(CacheFolder, FileInItsPlaceIsRefused) {
  const ScratchDir scratch;
  std::ofstream(scratch.File("cache")) << "a file";
  EXPECT_EQ(OpenCacheFolder(scratch.File("cache"), "model").error().code, Code::kInvalidArgument);
  EXPECT_EQ(OpenCacheFolder(scratch.File("cache/below"), "model").error().code, Code::kUnavailable);
}

TEST(PrefixIndex, CountsBytesAndOrdersByUse) {
  PrefixIndex index;
  index.Add("a", 10);
  index.Add("b", 20);
  index.Touch("a");
  EXPECT_EQ(index.Oldest(), "b");
  index.Add("b", 5);
  EXPECT_EQ(index.Oldest(), "a");
  EXPECT_EQ(index.bytes(), 15);
  index.Remove(index.Oldest());
  index.Remove("unknown");
  index.Touch("unknown");
  EXPECT_EQ(index.files(), 1);
  EXPECT_EQ(index.bytes(), 5);
}

}  // namespace
}  // namespace latte::prefix_store_test

// Rules of global memory.
#include <vector>

#include "tests/cuda/rules/rules.h"

namespace latte::cuda::global_rules_test {
namespace {

using namespace emulator;

// 1,024 words, written or poisoned.
struct Buffer {
  explicit Buffer(GlobalMemory& memory, Content content = Content::kWritten, bool writable = true)
      : words(1024) {
    memory.Add(words.data(), 4096, content, writable);
  }
  std::vector<int32_t> words;
};

Report RunBlocks(int blocks, int threads, GlobalMemory& memory, const std::function<void()>& body,
                 uint64_t seed = 1) {
  Options options;
  options.seed = seed;
  return Launch({"probe", {blocks}, threads, 0}, memory, options, body);
}

TEST(GlobalRules, AccessesLieInAnAllocation) {
  GlobalMemory memory;
  Buffer b(memory);
  int32_t* p = b.words.data();
  ExpectSilent(RunBlocks(1, 32, memory, [=] { StoreGlobal(p + 992 + Thread(), 1); }));
  const Report past = RunBlocks(1, 32, memory, [=] { LoadGlobal(p + 993 + Thread()); });
  ExpectError(past, "global read of 4 bytes, global_test.cc:");
  ExpectError(past, "outside of every allocation: at byte 4096 of one of 4096");
  ExpectError(RunBlocks(1, 32, memory, [=] { StoreGlobal(p - 1, 1); }), "global write of 4 bytes");
  memory.Remove(p);
  ExpectError(RunBlocks(1, 32, memory, [=] { LoadGlobal(p); }), "before every allocation");
}

TEST(GlobalRules, ReadOnlyAndMisaligned) {
  GlobalMemory memory;
  Buffer b(memory, Content::kWritten, false);
  int32_t* p = b.words.data();
  ExpectSilent(RunBlocks(4, 32, memory, [=] { LoadGlobal(p + Thread()); }));
  ExpectError(RunBlocks(1, 32, memory, [=] { StoreGlobal(p, 1); }),
              "write to a read-only allocation");
  const auto* odd = reinterpret_cast<const Floats2*>(p + 1);
  ExpectError(RunBlocks(1, 32, memory, [=] { LoadGlobal(odd); }), "misaligned global address");
}

TEST(GlobalRules, PoisonLastsUntilAWrite) {
  GlobalMemory memory;
  Buffer b(memory, Content::kPoisoned);
  int32_t* p = b.words.data();
  const auto load = [&] { return RunBlocks(1, 32, memory, [=] { LoadGlobal(p + Thread()); }); };
  ExpectError(load(), "read of global memory never written, global_test.cc:");
  EXPECT_EQ(memory.FirstUnwritten(p, 128), 0);
  memory.NoteWrite(p, 64);
  EXPECT_EQ(memory.FirstUnwritten(p, 128), 64);
  EXPECT_FALSE(load().errors.empty());
  ExpectSilent(RunBlocks(1, 32, memory, [=] { StoreGlobal(p + Thread(), 1); }));
  EXPECT_EQ(memory.FirstUnwritten(p, 128), -1);
  ExpectSilent(load());
  memory.NotePoison(p, 4);
  EXPECT_FALSE(load().errors.empty());
}

TEST(GlobalRules, ACopyCarriesPoison) {
  GlobalMemory memory;
  Buffer from(memory, Content::kPoisoned), to(memory, Content::kWritten);
  memory.NoteWrite(from.words.data(), 10);
  memory.NoteCopy(to.words.data() + 1, from.words.data(), 20);
  EXPECT_EQ(memory.FirstUnwritten(to.words.data(), 4096), 14);
  EXPECT_EQ(memory.FirstUnwritten(to.words.data() + 6, 4000), -1);
}

TEST(GlobalRules, BlocksWriteDifferentBytes) {
  GlobalMemory memory;
  Buffer b(memory);
  int32_t* p = b.words.data();
  ExpectSilent(RunBlocks(4, 32, memory, [=] { StoreGlobal(p + 32 * BlockX() + Thread(), 1); }));
  // The next launch may write them again.
  ExpectSilent(
      RunBlocks(4, 32, memory, [=] { StoreGlobal(p + 96 - 32 * BlockX() + Thread(), 1); }));
  const Report report =
      RunBlocks(4, 32, memory, [=] { StoreGlobal(p + 31 * BlockX() + Thread(), 1); });
  ExpectError(report, "write, global_test.cc:");
  ExpectError(report, "of the same launch has written");
}

TEST(GlobalRules, BytesOfOneWordMayBelongToTwoBlocks) {
  GlobalMemory memory;
  Buffer b(memory, Content::kPoisoned);
  auto* halves = reinterpret_cast<uint16_t*>(b.words.data());
  auto* bytes = reinterpret_cast<uint8_t*>(b.words.data());
  ExpectSilent(RunBlocks(5, 32, memory, [=] {
    if (Thread() < 3) StoreGlobal(halves + 3 * BlockX() + Thread(), 1);
  }));
  EXPECT_EQ(memory.FirstUnwritten(halves, 32), 30);
  ExpectSilent(RunBlocks(5, 32, memory, [=] {
    if (Thread() < 3) StoreGlobal(bytes + 3 * BlockX() + Thread(), 1);
  }));
  EXPECT_FALSE(RunBlocks(5, 32, memory, [=] {
                 if (Thread() < 3) StoreGlobal(bytes + 2 * BlockX() + Thread(), 1);
               }).errors.empty());
}

TEST(GlobalRules, ABlockDoesNotReadFromAnotherInEitherOrder) {
  GlobalMemory memory;
  Buffer b(memory);
  int32_t* p = b.words.data();
  bool read_first = false, write_first = false;
  for (uint64_t seed = 1; seed < 12; ++seed) {
    const Report report = RunBlocks(
        2, 32, memory,
        [=] {
          if (BlockX() == 0) StoreGlobal(p + Thread(), 1);
          if (BlockX() == 1) LoadGlobal(p + Thread());
        },
        seed);
    EXPECT_FALSE(report.errors.empty());
    write_first |=
        Joined(report).find("that block 0 of the same launch has written") != std::string::npos;
    read_first |= Joined(report).find("that block 1 of the same launch read") != std::string::npos;
  }
  EXPECT_TRUE(write_first && read_first);
}

TEST(GlobalRules, LanesOfABlockNeedOrder) {
  GlobalMemory memory;
  Buffer b(memory, Content::kPoisoned);
  int32_t* p = b.words.data();
  const auto kernel = [&](bool barrier) {
    return RunBlocks(1, 64, memory, [=] {
      StoreGlobal(p + Thread(), Thread());
      if (barrier) SyncThreads();
      if (!barrier) ShuffleXor(1, 1);
      LoadGlobal(p + 63 - Thread());
    });
  };
  ExpectSilent(kernel(true));
  ExpectError(kernel(false), "race: read of global memory, global_test.cc:");
  ExpectError(RunBlocks(1, 32, memory, [=] { StoreGlobal(p, Thread()); }),
              "race: write of global memory, global_test.cc:");
}

TEST(GlobalRules, AllSizesPassThrough) {
  GlobalMemory memory;
  Buffer b(memory);
  auto* bytes = reinterpret_cast<uint8_t*>(b.words.data());
  ExpectSilent(RunBlocks(1, 32, memory, [=] {
    const int i = Thread();
    StoreGlobal(bytes + i, static_cast<uint8_t>(i));
    StoreGlobal(reinterpret_cast<uint16_t*>(bytes + 256) + i, static_cast<uint16_t>(300 * i));
    StoreGlobal(reinterpret_cast<int64_t*>(bytes + 512) + i, int64_t{i} << 40);
    StoreGlobal(reinterpret_cast<Floats4*>(bytes + 1024) + i, Floats4{1, 2, 3, float(i)});
    EXPECT_EQ(LoadGlobal(bytes + i), i);
    EXPECT_EQ(LoadGlobal(reinterpret_cast<uint16_t*>(bytes + 256) + i), 300 * i);
    EXPECT_EQ(LoadGlobal(reinterpret_cast<int64_t*>(bytes + 512) + i), int64_t{i} << 40);
    EXPECT_EQ(LoadGlobal(reinterpret_cast<Floats4*>(bytes + 1024) + i).w, float(i));
  }));
}

}  // namespace
}  // namespace latte::cuda::global_rules_test

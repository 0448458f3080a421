// Rules of sm_90a: mbarriers, TMA, wgmma and the proxy of asynchronous copies.
#include <cmath>
#include <vector>

#include "tests/cuda/rules/rules.h"

namespace latte::cuda::sm90_rules_test {
namespace {

using namespace emulator;

constexpr int kRows = 20, kPlanes = 3, kBoxRows = 8, kBoxBytes = 128 * kBoxRows;

SharedAddr Mbarrier(int i = 0) { return SharedBase() + 32768 + 8 * static_cast<SharedAddr>(i); }

Options Landed(Landing landing) {
  Options options;
  options.landing = landing;
  return options;
}

// A tensor of 3 × 20 × 64 numbers of two bytes, each its own index.
class Tma : public testing::Test {
 protected:
  Tma() : data_(64 * kRows * kPlanes) {
    for (size_t i = 0; i < data_.size(); ++i) data_[i] = static_cast<uint16_t>(i);
    memory_.Add(data_.data(), static_cast<int64_t>(2 * data_.size()), Content::kWritten, false);
    const Tensor tensor{
        data_.data(), 2, {64, kRows, kPlanes}, {128, 128 * kRows}, {64, kBoxRows, 1}};
    EncodeTensorMap(tensor, &map_);
  }

  // Lane 0 initialises mbarrier 0 and does `produce`; then all lanes do `consume`.
  Report Run(const std::function<void()>& produce, const std::function<void()>& consume,
             const Options& options = {}) {
    return RunBlock(
        64,
        [&] {
          if (Thread() == 0) {
            MbarrierInit(Mbarrier(), 1);
            FenceMbarrierInit();
          }
          SyncThreads();
          if (Thread() == 0) produce();
          consume();
        },
        options, &memory_);
  }

  void Load(int y, int z = 1) {
    MbarrierArriveExpect(Mbarrier(), kBoxBytes);
    TmaLoad(SharedBase(), &map_, Mbarrier(), 0, y, z);
  }

  // The first number of a chunk of 16 bytes of the box, where the swizzle puts it.
  static int Chunk(int row, int chunk) {
    return LoadShared<int>(Word(32 * row + 4 * (chunk ^ (row & 7)))) & 0xffff;
  }

  std::vector<uint16_t> data_;
  GlobalMemory memory_;
  TensorMap map_;
};

TEST_F(Tma, ABoxIsThereAfterTheWaitAndSwizzled) {
  for (const Landing landing : {Landing::kLate, Landing::kEarly, Landing::kRandom})
    ExpectSilent(Run([&] { Load(4); },
                     [] {
                       MbarrierWait(Mbarrier(), 0);
                       const int row = Thread() / 8, chunk = Thread() % 8;
                       EXPECT_EQ(Chunk(row, chunk), 64 * (kRows + 4 + row) + 8 * chunk);
                     },
                     Landed(landing)));
}

TEST_F(Tma, OutsideOfTheTensorItIsZero) {
  ExpectSilent(Run([&] { Load(kRows - 2, 2); },
                   [] {
                     MbarrierWait(Mbarrier(), 0);
                     EXPECT_EQ(Chunk(1, 0), 64 * (3 * kRows - 1));
                     EXPECT_EQ(Chunk(2, Thread() % 8), 0);
                   }));
}

TEST_F(Tma, AReadNeedsTheWait) {
  ExpectError(Run([&] { Load(0); }, [] { LoadShared<int>(Word(Thread())); }), "sm90_test.cc:");
}

TEST_F(Tma, BytesMustBeThoseExpected) {
  const auto load = [&](int bytes) {
    return Run(
        [&, bytes] {
          MbarrierArriveExpect(Mbarrier(), bytes);
          TmaLoad(SharedBase(), &map_, Mbarrier(), 0, 0, 0);
        },
        [] { MbarrierWait(Mbarrier(), 0); });
  };
  ExpectSilent(load(kBoxBytes));
  ExpectError(load(2 * kBoxBytes), "deadlock: 64 lanes wait in an mbarrier at sm90_test.cc:");
}

TEST_F(Tma, ACopyIsNotLeftUnderWay) {
  ExpectError(Run([&] { Load(0); }, [] {}),
              "TMA still under way when the block ends, sm90_test.cc:");
}

TEST_F(Tma, MapsAndTargetsAreChecked) {
  TensorMap unknown = {};
  ExpectError(Run([&] { TmaLoad(SharedBase(), &unknown, Mbarrier(), 0, 0, 0); }, [] {}),
              "TMA with a map that cuTensorMapEncodeTiled did not make");
  ExpectError(Run([&] { TmaLoad(SharedBase() + 64, &map_, Mbarrier(), 0, 0, 0); }, [] {}),
              "misaligned shared address");
  ExpectError(Run([&] { TmaLoad(SharedBase(), &map_, Mbarrier(5), 0, 0, 0); }, [] {}),
              "no mbarrier was initialised here");
  memory_.Remove(data_.data());
  ExpectError(Run([&] { Load(0); }, [] {}), "global read of 16 bytes");
}

TEST(Mbarriers, CountArrivalsByPhase) {
  const auto kernel = [](int arrivals, int arriving) {
    return RunBlock(64, [=] {
      if (Thread() == 0) MbarrierInit(Mbarrier(), arrivals);
      SyncThreads();
      MbarrierWait(Mbarrier(), 1);  // of a new barrier it is over
      SyncThreads();
      if (Thread() < arriving) {
        StoreShared(Word(Thread()), Thread());
        MbarrierArrive(Mbarrier());
      }
      MbarrierWait(Mbarrier(), 0);
      EXPECT_EQ(LoadShared<int>(Word(Thread() % arriving)), Thread() % arriving);
    });
  };
  ExpectSilent(kernel(64, 64));
  ExpectSilent(kernel(32, 32));
  ExpectError(kernel(33, 32), "deadlock: 64 lanes wait in an mbarrier");
}

TEST(Mbarriers, TooManyArrivalsAreReported) {
  const Report report = RunBlock(32, [] {
    if (Thread() == 0) {
      MbarrierInit(Mbarrier(), 1);
      MbarrierArriveExpect(Mbarrier(), 128);  // the phase lasts
      MbarrierArrive(Mbarrier());
    }
  });
  ExpectError(report, "more arrivals than the mbarrier expects");
}

// ---- wgmma

constexpr int kTileBytes = 64 * 128;

void StoreTile(SharedAddr tile, uint32_t pair) {
  for (int i = Thread(); i < 64 * 8; i += 128)
    StoreShared(tile + 16 * static_cast<SharedAddr>(i), Words4{{pair, pair, pair, pair}});
}

struct WgmmaSteps {
  bool proxy_fence = true, fence = true, commit = true, wait = true;
  bool read_before_wait = false;
  int descriptor_of_one_lane = 0;  // bytes by which lane 3's differs
};

// d = Σ over 16 of 1·2 = 32 everywhere.
Report RunWgmma(const WgmmaSteps& steps, const Options& options = {}) {
  return RunBlock(
      128,
      [&] {
        const SharedAddr a = SharedBase(), b = SharedBase() + kTileBytes;
        StoreTile(a, PackBf16(1, 1));
        StoreTile(b, PackBf16(2, 2));
        if (steps.proxy_fence) FenceProxyAsync();
        SyncThreads();
        float d[32];
        if (steps.fence) WgmmaFence();
        const int off = Thread() == 3 ? steps.descriptor_of_one_lane : 0;
        Wgmma64x64<false>(d, MatrixDescriptor(a + static_cast<SharedAddr>(off), 16, 1024),
                          MatrixDescriptor(b, 16, 1024));
        if (steps.commit) WgmmaCommit();
        if (steps.read_before_wait && options.landing == Landing::kLate) {
          EXPECT_TRUE(std::isnan(d[5]));
        }
        if (steps.wait) WgmmaWait<0>(d);
        if (steps.wait && steps.commit) {
          EXPECT_EQ(d[Thread() % 32], 32);
        }
      },
      options);
}

TEST(Wgmma, IsRightInEveryLanding) {
  for (const Landing landing : {Landing::kLate, Landing::kEarly, Landing::kRandom})
    ExpectSilent(RunWgmma({.read_before_wait = true}, Landed(landing)));
}

TEST(Wgmma, NeedsTheProxyFenceOfTheWriter) {
  ExpectError(RunWgmma({.proxy_fence = false}), "without fence.proxy.async after the store");
}

TEST(Wgmma, NeedsItsFence) {
  ExpectError(RunWgmma({.fence = false}), "wgmma without wgmma.fence before it, sm90_test.cc:");
}

TEST(Wgmma, IsCommittedAndWaitedFor) {
  ExpectError(RunWgmma({.wait = false}), "wgmma never waited for");
  ExpectError(RunWgmma({.commit = false}),
              "the wait does not cover the accumulator that it returns");
}

TEST(Wgmma, HasOneDescriptor) {
  ExpectError(RunWgmma({.descriptor_of_one_lane = 1024}), "lanes disagree on a wgmma descriptor");
}

TEST(Wgmma, OperandsAreNotWrittenMeanwhile) {
  const Report report = RunBlock(128, [] {
    StoreTile(SharedBase(), 0);
    FenceProxyAsync();
    SyncThreads();
    float d[32];
    WgmmaFence();
    Wgmma64x64<false>(d, MatrixDescriptor(SharedBase(), 16, 1024),
                      MatrixDescriptor(SharedBase(), 16, 1024));
    WgmmaCommit();
    StoreTile(SharedBase(), 0);
    WgmmaWait<0>(d);
  });
  ExpectError(report, "of what a wgmma under way still reads");
}

TEST(Registers, AWarpgroupTakesNoMoreThanThereAre) {
  const auto kernel = [](bool give) {
    return RunBlock(384, [=] {
      if (Thread() >= 256 && give) GiveRegisters<24>();
      if (Thread() >= 256 && !give) GiveRegisters<40>();
      if (Thread() < 256) TakeRegisters<240>();
    });
  };
  ExpectSilent(kernel(true));
  ExpectError(kernel(false), "setmaxnreg takes more registers than there are");
}

TEST(Capability, WordsOfSm90NeedSuchACard) {
  Options options;
  options.capability = 80;
  ExpectError(RunBlock(
                  128, [] { WgmmaFence(); }, options),
              "needs a card of capability 90, the emulated one has 80");
  ExpectError(RunBlock(
                  32, [] { MbarrierInit(Mbarrier(), 1); }, options),
              "mbarrier.init");
}

}  // namespace
}  // namespace latte::cuda::sm90_rules_test

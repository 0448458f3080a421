#include "src/tensor/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>

#include <gtest/gtest.h>

#include "src/tensor/transfer.h"
#include "src/tensor/workspace.h"

namespace latte::tensor_test {
namespace {

TEST(DType, BF16RoundsToNearestEvenAndKeepsSpecials) {
  EXPECT_EQ(FloatToBF16(1.0f), 0x3f80);
  EXPECT_EQ(FloatToBF16(1.0f + 0x1p-8f), 0x3f80);            // a tie goes to the even neighbour
  EXPECT_EQ(FloatToBF16(1.0f + 0x1p-7f + 0x1p-8f), 0x3f82);  // and here upwards
  EXPECT_EQ(FloatToBF16(1.0f + 0x1p-8f + 0x1p-20f), 0x3f81);
  EXPECT_EQ(FloatToBF16(std::numeric_limits<float>::infinity()), 0x7f80);
  EXPECT_EQ(FloatToBF16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(BF16ToFloat(FloatToBF16(std::bit_cast<float>(0x7f800001u)))));
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = BF16ToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(FloatToBF16(value), bits);
  }
}

TEST(DType, FloatToF16UndoesF16ToFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = F16ToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(F16ToFloat(FloatToF16(value)))) << bits;
      continue;
    }
    ASSERT_EQ(FloatToF16(value), bits);
    if (bits % 0x8000 == 0 || !std::isfinite(value)) continue;
    // Half a step towards zero is a tie, which goes to the even one of the two.
    const float below = F16ToFloat(static_cast<uint16_t>(bits - 1));
    const auto even = static_cast<uint16_t>(bits % 2 == 0 ? bits : bits - 1);
    ASSERT_EQ(FloatToF16((value + below) / 2), even) << bits;
  }
}

TEST(DType, F16ToFloatIsExactForAllValues) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint32_t exponent = (bits >> 10) & 31;
    const double mantissa = bits & 1023;
    double expected = exponent == 0 ? std::ldexp(mantissa, -24)
                                    : std::ldexp(1024 + mantissa, static_cast<int>(exponent) - 25);
    if (exponent == 31) expected = mantissa == 0 ? INFINITY : NAN;
    if ((bits & 0x8000) != 0) expected = -expected;
    const float value = F16ToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value));
    } else {
      ASSERT_EQ(static_cast<double>(value), expected) << bits;
    }
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0);
  }
}

TEST(DType, F8E4M3IsExactForAllValues) {
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const auto code = static_cast<uint8_t>(bits);
    const int exponent = static_cast<int>((bits >> 3) & 15);
    const double mantissa = bits & 7;
    const auto expected = [&](int bias) {
      const double magnitude = exponent == 0 ? std::ldexp(mantissa, 1 - bias - 3)
                                             : std::ldexp(8 + mantissa, exponent - bias - 3);
      return bits >= 128 ? -magnitude : magnitude;
    };
    if ((bits & 127) == 127) {
      EXPECT_TRUE(std::isnan(F8E4M3ToFloat(code)));
    } else {
      EXPECT_EQ(static_cast<double>(F8E4M3ToFloat(code)), expected(7)) << bits;
    }
    if (bits == 128) {
      EXPECT_TRUE(std::isnan(F8E4M3FnuzToFloat(code)));
    } else {
      EXPECT_EQ(static_cast<double>(F8E4M3FnuzToFloat(code)), expected(8)) << bits;
    }
  }
  EXPECT_EQ(F8E4M3ToFloat(0x7e), 448.0f);
  EXPECT_EQ(F8E4M3ToFloat(0x38), 1.0f);
  EXPECT_EQ(F8E4M3ToFloat(0x08), 0x1p-6f);
  EXPECT_EQ(F8E4M3ToFloat(0x01), 0x1p-9f);
  EXPECT_EQ(F8E4M3FnuzToFloat(0x7f), 240.0f);
}

TEST(DType, RowsOfTheTableAreInTheOrderOfTheEnum) {
  for (size_t i = 0; i < std::size(kDTypes); ++i) {
    EXPECT_EQ(static_cast<size_t>(kDTypes[i].dtype), i) << kDTypes[i].name;
    EXPECT_EQ(IsWeight(kDTypes[i].dtype) && kDTypes[i].load == nullptr, false) << kDTypes[i].name;
  }
  // Prefix files store these numbers.
  EXPECT_EQ(static_cast<int>(DType::kBF16), 2);
  EXPECT_EQ(static_cast<int>(DType::kU8), 6);
}

TEST(DType, LoadElementReadsEveryTypeAtAnyAlignment) {
  const auto load = [](DType dtype, std::initializer_list<int> bytes, int64_t i) {
    std::byte row[16] = {};
    size_t at = 1;
    for (const int byte : bytes) row[at++] = static_cast<std::byte>(byte);
    return LoadElement(row + 1, dtype, i);
  };
  EXPECT_EQ(load(DType::kF32, {0, 0, 0, 0, 0, 0, 0x40, 0xc0}, 1), -3.0f);
  EXPECT_EQ(load(DType::kF16, {0, 0, 0, 0xc2}, 1), -3.0f);
  EXPECT_EQ(load(DType::kBF16, {0, 0, 0x40, 0xc0}, 1), -3.0f);
  EXPECT_EQ(load(DType::kF8E4M3, {0, 0xc4}, 1), -3.0f);
  EXPECT_EQ(load(DType::kF8E4M3Fnuz, {0, 0xcc}, 1), -3.0f);
  EXPECT_EQ(load(DType::kI8, {0, 0xfd}, 1), -3.0f);
  EXPECT_EQ(load(DType::kU4, {0, 0xd3}, 2), 3.0f);
  EXPECT_EQ(load(DType::kU4, {0, 0xd3}, 3), 13.0f);
  EXPECT_EQ(load(DType::kF8E8M0, {0, 125}, 1), 0.25f);
  EXPECT_EQ(load(DType::kF8E8M0, {0}, 0), 0x1p-127f);
  EXPECT_TRUE(std::isnan(load(DType::kF8E8M0, {255}, 0)));
}

TEST(TensorView, SlicesAndReshapes) {
  Tensor owner(DType::kF32, {4, 6});
  for (int i = 0; i < 24; ++i) owner.Ptr<float>()[i] = static_cast<float>(i);
  const TensorView part = owner.view().Slice(1, 2, 5);
  EXPECT_EQ(part.Row<float>(3)[0], 20.0f);
  EXPECT_FALSE(part.contiguous());
  EXPECT_EQ(part.elements(), 12);
  const TensorView cube = owner.view().Reshape({2, 2, 6});
  EXPECT_EQ(cube.Row<float>(1)[6], 18.0f);
  EXPECT_EQ(ShapeString(cube), "f32[2, 2, 6]");
  EXPECT_TRUE(TensorView().empty());
  EXPECT_DEATH(owner.view().Slice(0, 3, 5), "broken invariant");
}

TEST(Workspace, ScopesGiveBackAndBlocksAreReused) {
  Workspace workspace;
  std::byte* first = nullptr;
  for (int step = 0; step < 3; ++step) {
    const Workspace::Scope scope(workspace);
    const TensorView a = workspace.Take(DType::kF32, {3});
    if (step == 0) first = a.data;
    EXPECT_EQ(a.data, first);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data) % 64, 0u);
    const TensorView large = workspace.Take(DType::kF32, {3 << 20});  // needs a block of its own
    large.Ptr<float>()[(3 << 20) - 1] = 1.0f;
    const TensorView b = workspace.Take(DType::kBF16, {5});
    EXPECT_NE(b.data, a.data);
  }
  const int64_t capacity = workspace.capacity_bytes();
  {
    const Workspace::Scope scope(workspace);
    workspace.Take(DType::kF32, {3 << 20});
  }
  EXPECT_EQ(workspace.capacity_bytes(), capacity);
}

TEST(Workspace, GrowsByDoubling) {
  Workspace workspace;
  int growths = 0;
  for (int64_t mib = 1; mib <= 100; ++mib) {  // steps, each a little larger than the last
    const Workspace::Scope scope(workspace);
    const int64_t before = workspace.capacity_bytes();
    for (int piece = 0; piece < 4; ++piece) workspace.Take(DType::kU8, {mib << 18});
    if (workspace.capacity_bytes() > before) ++growths;
  }
  EXPECT_LE(growths, 7);
  EXPECT_LE(workspace.capacity_bytes(), 256 << 20);
}

// A reserved block is enough for growing steps: none of them leaves a block behind.
TEST(Workspace, ReservedItDoesNotGrow) {
  Workspace workspace;
  workspace.Reserve(100 << 20);
  std::byte* first = nullptr;
  for (int64_t mib = 1; mib <= 100; ++mib) {
    const Workspace::Scope scope(workspace);
    const TensorView taken = workspace.Take(DType::kU8, {mib << 20});
    if (first == nullptr) first = taken.data;
    EXPECT_EQ(taken.data, first);
  }
  EXPECT_EQ(workspace.capacity_bytes(), 100 << 20);
  workspace.Reserve(200 << 20);  // in use: nothing changes
  EXPECT_EQ(workspace.capacity_bytes(), 100 << 20);
}

TEST(Workspace, AnImpossibleReserveIsNone) {
  Workspace workspace;
  workspace.Reserve(int64_t{1} << 62);
  const Workspace::Scope scope(workspace);
  workspace.Take(DType::kF32, {3}).Ptr<float>()[2] = 1.0f;
  EXPECT_EQ(workspace.capacity_bytes(), 4 << 20);
}

TEST(TensorView, NthRowCountsTheRowsOfAllOuterDimensions) {
  Tensor t(DType::kF32, {2, 3, 4});
  const TensorView columns = t.view().Slice(1, 1, 3).Slice(2, 1, 3);  // 4 rows of 2
  for (const auto& [row, element] : {std::pair{0, 5}, {1, 9}, {2, 17}, {3, 21}})
    EXPECT_EQ(columns.NthRow(row), t.view().data + element * 4);
}

TEST(Transfer, CopiesOfSlicesAreContiguous) {
  Tensor t(DType::kF32, {2, 3});
  for (int i = 0; i < 6; ++i) t.Ptr<float>()[i] = static_cast<float>(i);
  const Tensor copy = CopyToDevice(t.view().Slice(1, 1, 3), HostDevice());
  EXPECT_TRUE(copy.view().contiguous());
  EXPECT_EQ(CopyToHost(std::span(copy.Ptr<float>(), 4), HostDevice(), nullptr),
            (std::vector<float>{1, 2, 4, 5}));
}

TEST(Transfer, TheHostNeedsNoCopy) {
  const Tensor t(DType::kF32, {4});
  Tensor buffer;
  EXPECT_EQ(HostView(t, HostDevice(), nullptr, buffer).data, t.view().data);
}

TEST(Device, GivesZeroedAlignedMemoryOrNone) {
  for (const MemoryUse use : {MemoryUse::kTensor, MemoryUse::kWorkspace, MemoryUse::kCache}) {
    const auto memory = DeviceMemory::Allocate(HostDevice(), 100, use);
    ASSERT_TRUE(memory);
    EXPECT_EQ(std::bit_cast<uintptr_t>(memory->data()) % 64, 0u);
    EXPECT_TRUE(std::all_of(memory->data(), memory->data() + 100,
                            [](std::byte b) { return b == std::byte{0}; }));
    EXPECT_FALSE(DeviceMemory::Allocate(HostDevice(), 0, use));
  }
  EXPECT_FALSE(DeviceMemory::Allocate(HostDevice(), int64_t{1} << 62, MemoryUse::kCache));
}

}  // namespace
}  // namespace latte::tensor_test

#include "src/kernels/cpu/blocks/unpack_blocks.h"

#include <algorithm>
#include <array>
#include <bit>

#include "src/tensor/weight_blocks.h"

namespace latte::cpu {
namespace {

// Codes that are unpacked together. The positions of all their bits in a block are constants, or advance
// by one byte per code, and nothing else can be in `run`, so that the loop becomes vectors.
constexpr int kUnpackRun = 16;

template <class Block, int kBegin = 0>
inline void UnpackCodes(const uint8_t* block, int8_t* codes) {
  int8_t run[kUnpackRun];
  for (int i = 0; i < kUnpackRun; ++i) run[i] = static_cast<int8_t>(Block::Code(block, kBegin, i));
  std::copy_n(run, kUnpackRun, codes + kBegin);
  if constexpr (kBegin + kUnpackRun < Block::kValues)
    UnpackCodes<Block, kBegin + kUnpackRun>(block, codes);
}

template <class Block>
constexpr int kGroupsOf = Block::kValues / Block::kGroup;

// In a block of these bytes every offset that the type can have is other than −0.
template <class Block>
constexpr bool HasOffsets() {
  std::array<uint8_t, Block::kBytes> block;
  block.fill(0x11);
  return std::bit_cast<uint32_t>(Block::Scale(block.data(), 0).offset) != 0x80000000u;
}

template <class Block>
void UnpackBlocks(const std::byte* row, int64_t blocks, int8_t* codes, float* scales,
                  float* offsets) {
  constexpr int kGroups = kGroupsOf<Block>;
  const auto* block = reinterpret_cast<const uint8_t*>(row);
  for (int64_t b = 0; b < blocks; ++b, block += Block::kBytes, codes += Block::kValues) {
    UnpackCodes<Block>(block, codes);
    // Not into the results, which might be the block, for all that the compiler knows.
    float scale[kGroups], offset[kGroups];
    for (int g = 0; g < kGroups; ++g) {
      const blocks::GroupScale group = Block::Scale(block, g);
      scale[g] = group.scale;
      offset[g] = group.offset;
    }
    scales = std::copy_n(scale, kGroups, scales);
    if constexpr (HasOffsets<Block>()) offsets = std::copy_n(offset, kGroups, offsets);
  }
}

template <class Block>
void DecodeBlocks(const std::byte* row, int64_t blocks, float* values) {
  const auto* block = reinterpret_cast<const uint8_t*>(row);
  for (int64_t b = 0; b < blocks; ++b, block += Block::kBytes) {
    int8_t codes[Block::kValues];
    UnpackCodes<Block>(block, codes);
    for (int g = 0; g < kGroupsOf<Block>; ++g, values += Block::kGroup) {
      const blocks::GroupScale group = Block::Scale(block, g);
      const int8_t* const own = codes + g * Block::kGroup;
      for (int i = 0; i < Block::kGroup; ++i)
        values[i] = group.scale * static_cast<float>(own[i]) + group.offset;
    }
  }
}

template <class Block>
constexpr BlockUnpacker UnpackerFor() {
  static_assert(Block::kGroup == 16 || Block::kGroup == 32);
  return {Block::kGroup, HasOffsets<Block>(), UnpackBlocks<Block>, DecodeBlocks<Block>};
}

// In the order of DType.
constexpr DType kFirstBlocks = DType::kQ4_0;
constexpr BlockUnpacker kUnpackers[] = {
    UnpackerFor<blocks::Q4_0>(), UnpackerFor<blocks::Q4_1>(),   UnpackerFor<blocks::Q5_0>(),
    UnpackerFor<blocks::Q5_1>(), UnpackerFor<blocks::Q8_0>(),   UnpackerFor<blocks::Q2_K>(),
    UnpackerFor<blocks::Q3_K>(), UnpackerFor<blocks::Q4_K>(),   UnpackerFor<blocks::Q5_K>(),
    UnpackerFor<blocks::Q6_K>(), UnpackerFor<blocks::IQ4_NL>(), UnpackerFor<blocks::IQ4_XS>(),
    UnpackerFor<blocks::MXFP4>()};
static_assert(std::ssize(kUnpackers) == std::ranges::count_if(kDTypes, [](const DTypeInfo& info) {
                return info.use == DTypeUse::kBlocks;
              }));

}  // namespace

const BlockUnpacker& UnpackerOf(DType dtype) {
  return kUnpackers[static_cast<size_t>(dtype) - static_cast<size_t>(kFirstBlocks)];
}

}  // namespace latte::cpu

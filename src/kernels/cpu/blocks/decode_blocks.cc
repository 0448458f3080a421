#include "src/kernels/cpu/blocks/decode_blocks.h"

#include <algorithm>

#include "src/tensor/weight_blocks.h"

namespace latte::cpu {
namespace {

// Codes that are unpacked together. The positions of all their bits in a block are constants, or
// advance by one byte per code, and nothing else can be in `run`, so that the loop becomes vectors.
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
void DecodeRow(const std::byte* row, int64_t blocks, float* values) {
  const auto* block = reinterpret_cast<const uint8_t*>(row);
  for (int64_t b = 0; b < blocks; ++b, block += Block::kBytes) {
    int8_t codes[Block::kValues];
    UnpackCodes<Block>(block, codes);
    for (int g = 0; g < Block::kValues / Block::kGroup; ++g, values += Block::kGroup) {
      const blocks::GroupScale group = Block::Scale(block, g);
      const int8_t* const own = codes + g * Block::kGroup;
      for (int i = 0; i < Block::kGroup; ++i)
        values[i] = group.scale * static_cast<float>(own[i]) + group.offset;
    }
  }
}

// In the order of DType.
constexpr DType kFirstBlocks = DType::kQ4_0;
constexpr DecodeBlocks kDecoders[] = {
    DecodeRow<blocks::Q4_0>, DecodeRow<blocks::Q4_1>,   DecodeRow<blocks::Q5_0>,
    DecodeRow<blocks::Q5_1>, DecodeRow<blocks::Q8_0>,   DecodeRow<blocks::Q2_K>,
    DecodeRow<blocks::Q3_K>, DecodeRow<blocks::Q4_K>,   DecodeRow<blocks::Q5_K>,
    DecodeRow<blocks::Q6_K>, DecodeRow<blocks::IQ4_NL>, DecodeRow<blocks::IQ4_XS>,
    DecodeRow<blocks::MXFP4>};
static_assert(std::ssize(kDecoders) == std::ranges::count_if(kDTypes, [](const DTypeInfo& info) {
                return info.use == DTypeUse::kBlocks;
              }));

}  // namespace

DecodeBlocks DecoderOf(DType dtype) {
  return kDecoders[static_cast<size_t>(dtype) - static_cast<size_t>(kFirstBlocks)];
}

}  // namespace latte::cpu

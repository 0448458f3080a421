// The definition of correct: every op in readable loops, sums in fp64, rounded once. Backends are
// compared with these.
#pragma once

#include "src/kernels/op.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/params/moe.h"

namespace latte::ref {

// Element i of a row whose dtype is known only at run time; any alignment.
inline float Load(const std::byte* row, DType dtype, int64_t i) {
  if (dtype == DType::kF32) {
    float value;
    __builtin_memcpy(&value, row + i * 4, 4);
    return value;
  }
  if (dtype == DType::kF8E4M3) return F8E4M3ToFloat(static_cast<uint8_t>(row[i]));
  if (dtype == DType::kF8E4M3Fnuz) return F8E4M3FnuzToFloat(static_cast<uint8_t>(row[i]));
  if (dtype == DType::kI8) return static_cast<float>(static_cast<int8_t>(row[i]));
  if (dtype == DType::kU4)
    return static_cast<float>(static_cast<int>(row[i / 2]) >> i % 2 * 4 & 15);
  uint16_t bits;
  __builtin_memcpy(&bits, row + i * 2, 2);
  return dtype == DType::kBF16 ? BF16ToFloat(bits) : F16ToFloat(bits);
}

// Cached rows of every kind but kPlain: [latent | rope] to bytes and back to f32.
void QuantiseRow(RowFormat format, const float* latent, int64_t c, const float* rope, int64_t r,
                 std::byte* row);
void DequantiseRow(RowFormat format, const std::byte* row, int64_t c, int64_t r, float* to);

void Gemm(const GemmOp::Params&, const Exec&);
void GemmT(const GemmTOp::Params&, const Exec&);
void QuantizeRows(const QuantizeRowsOp::Params&, const Exec&);
void RmsNorm(const RmsNormOp::Params&, const Exec&);
void Rope(const RopeOp::Params&, const Exec&);
void SiluMul(const SiluMulOp::Params&, const Exec&);
void Add(const AddOp::Params&, const Exec&);
void AddRmsNorm(const AddRmsNormOp::Params&, const Exec&);
void Gather(const GatherOp::Params&, const Exec&);
void Cast(const CastOp::Params&, const Exec&);

void Append(const AppendOp::Params&, const Exec&);
void NormRopeAppend(const NormRopeAppendOp::Params&, const Exec&);
void GatherPages(const GatherPagesOp::Params&, const Exec&);
void MlaDecode(const MlaDecodeOp::Params&, const Exec&);
void Mha(const MhaOp::Params&, const Exec&);
void LseMerge(const LseMergeOp::Params&, const Exec&);

void Route(const RouteOp::Params&, const Exec&);
void Combine(const CombineOp::Params&, const Exec&);

}  // namespace latte::ref

// Every kernel, once: X(kernel, params, threads of a block).
//
// The list has three readings. nvcc makes an entry point `latte_<kernel>` of each (images/), g++
// the table of the emulated driver (tests/cuda/driver), and the host its handles (launch/). A
// kernel has one parameter, its params, which the driver copies.
#pragma once

#include "src/kernels/cuda/params/attention.h"
#include "src/kernels/cuda/params/cache.h"
#include "src/kernels/cuda/params/gemm.h"
#include "src/kernels/cuda/params/moe.h"
#include "src/kernels/cuda/params/norm.h"
#include "src/kernels/cuda/params/rows.h"

#define LATTE_CUDA_KERNELS(X)                      \
  X(Gemm, GemmParams, 128)                         \
  X(GemmT, GemmTParams, 128)                       \
  X(ExpertGemm, ExpertGemmParams, 128)             \
  X(MlaDecode, MlaDecodeParams, 128)               \
  X(IndexTopK, IndexTopKParams, 128)               \
  X(Mha, MhaParams, 128)                           \
  X(LseMerge, LseMergeParams, 128)                 \
  X(Append, AppendParams, 128)                     \
  X(NormRopeAppend, NormRopeAppendParams, 128)     \
  X(GatherPages, GatherPagesParams, 128)           \
  X(CopyPage, CopyPageParams, 128)                 \
  X(Route, RouteParams, 32)                        \
  X(GroupByExpert, GroupByExpertParams, 128)       \
  X(Combine, CombineParams, 128)                   \
  X(RmsNorm, RmsNormParams, 128)                   \
  X(LayerNorm, LayerNormParams, 128)               \
  X(RopeAngles, RopeAnglesParams, 128)             \
  X(Rope, RopeParams, 128)                         \
  X(AddRows, AddParams, 128)                       \
  X(Gather, GatherParams, 128)                     \
  X(Cast, CastParams, 128)                         \
  X(QuantizeRows, QuantizeRowsParams, 128)         \
  X(QueryTemperature, QueryTemperatureParams, 128) \
  X(FiniteRows, FiniteRowsParams, 128)             \
  X(PackDrafts, PackDraftsParams, 128)

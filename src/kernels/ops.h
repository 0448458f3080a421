// All ops, in the order of listings.
#pragma once

#include "src/kernels/params/gemm.h"
#include "src/kernels/params/indexer.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/params/moe.h"
#include "src/kernels/params/sampling.h"
#include "src/kernels/params/step_rows.h"

namespace latte {

template <template <class...> class Of>
using AllOps =
    Of<GemmOp, GemmTOp, MlaDecodeOp, IndexTopKOp, MergeSplitsOp, MhaOp, LseMergeOp, AppendOp,
       NormRopeAppendOp, GatherPagesOp, RouteOp, GroupByExpertOp, ExpertGemmOp, CombineOp,
       RmsNormOp, LayerNormOp, RopeAnglesOp, RopeOp, QueryTemperatureOp, AddOp, AddRmsNormOp,
       GatherOp, CastOp, QuantizeRowsOp, FiniteRowsOp, PackDraftsOp, CopyPageOp, LogitMaxOp,
       TokenWeightSumOp, TokenWeightsOp, TokenHistogramOp, FindBucketOp>;

}  // namespace latte

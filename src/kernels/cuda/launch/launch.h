// Starts the kernels of each op: a function of launch/ converts the params of an op to the params
// of a kernel and chooses the grid. Each throws DeviceError.
#pragma once

#include "src/kernels/cuda/launch/kernel_set.h"
#include "src/kernels/op.h"
#include "src/kernels/ops.h"

namespace latte::cuda {

// Requires: a machine that is a GPU.
inline const KernelSet& KernelsOf(const Exec& exec) { return *exec.machine->gpu; }

// The rows of a layer. pages: [pages, P, W].
CacheRows CacheRowsOf(const TensorView& pages, CacheRowFormat format, int64_t c, int64_t r);

// Lanes of one grid: the blocks for `lanes` lanes.
Grid LanesGrid(int64_t lanes);
// The blocks for `rows` rows, a warp each.
Grid WarpsGrid(int64_t rows);

void LaunchGemm(const GemmOp::Params& p, const Exec& exec);
void LaunchGemmT(const GemmTOp::Params& p, const Exec& exec);
void LaunchExpertGemm(const ExpertGemmOp::Params& p, const Exec& exec);
void LaunchMlaDecode(const MlaDecodeOp::Params& p, const Exec& exec);
void LaunchIndexTopK(const IndexTopKOp::Params& p, const Exec& exec);
void LaunchMha(const MhaOp::Params& p, const Exec& exec);
void LaunchLseMerge(const LseMergeOp::Params& p, const Exec& exec);
void LaunchAppend(const AppendOp::Params& p, const Exec& exec);
void LaunchNormRopeAppend(const NormRopeAppendOp::Params& p, const Exec& exec);
void LaunchGatherPages(const GatherPagesOp::Params& p, const Exec& exec);
void LaunchCopyPage(const CopyPageOp::Params& p, const Exec& exec);
void LaunchRoute(const RouteOp::Params& p, const Exec& exec);
void LaunchGroupByExpert(const GroupByExpertOp::Params& p, const Exec& exec);
void LaunchCombine(const CombineOp::Params& p, const Exec& exec);
void LaunchRmsNorm(const RmsNormOp::Params& p, const Exec& exec);
void LaunchAddRmsNorm(const AddRmsNormOp::Params& p, const Exec& exec);
void LaunchLayerNorm(const LayerNormOp::Params& p, const Exec& exec);
void LaunchRopeAngles(const RopeAnglesOp::Params& p, const Exec& exec);
void LaunchRope(const RopeOp::Params& p, const Exec& exec);
void LaunchAdd(const AddOp::Params& p, const Exec& exec);
void LaunchGather(const GatherOp::Params& p, const Exec& exec);
void LaunchCast(const CastOp::Params& p, const Exec& exec);
void LaunchQuantizeRows(const QuantizeRowsOp::Params& p, const Exec& exec);
void LaunchQueryTemperature(const QueryTemperatureOp::Params& p, const Exec& exec);
void LaunchFiniteRows(const FiniteRowsOp::Params& p, const Exec& exec);
void LaunchPackDrafts(const PackDraftsOp::Params& p, const Exec& exec);

}  // namespace latte::cuda

#include <algorithm>

#include "src/base/math.h"
#include "src/kernels/cuda/launch/launch.h"

namespace latte::cuda {

void LaunchRopeAngles(const RopeAnglesOp::Params& p, const Exec& exec) {
  RopeAnglesParams out = {};
  out.positions = p.positions.data();
  out.frequency = p.frequency.Ptr<const float>();
  out.cos = p.cos.Ptr<float>();
  out.sin = p.sin.Ptr<float>();
  out.t = static_cast<int32_t>(p.cos.shape[0]);
  out.half = static_cast<int32_t>(p.frequency.shape[0]);
  out.amplitude = p.amplitude;
  KernelsOf(exec).Launch<KernelId::kRopeAngles>(LanesGrid(p.cos.elements()), out, exec.stream);
}

void LaunchRope(const RopeOp::Params& p, const Exec& exec) {
  RopeParams out = {};
  out.x = p.x.Ptr<float>();
  out.cos = p.cos.Ptr<const float>();
  out.sin = p.sin.Ptr<const float>();
  out.stride = p.x.stride[0];
  out.group_stride = p.x.stride[1];
  out.m = static_cast<int32_t>(p.x.shape[0]);
  out.g = static_cast<int32_t>(p.x.shape[1]);
  out.r = static_cast<int32_t>(p.x.shape[2]);
  out.interleaved = p.interleaved ? 1 : 0;
  KernelsOf(exec).Launch<KernelId::kRope>(LanesGrid(p.x.elements() / 2), out, exec.stream);
}

void LaunchAdd(const AddOp::Params& p, const Exec& exec) {
  const AddParams out = {p.x.Ptr<const float>(), p.y.Ptr<float>(), p.y.elements()};
  KernelsOf(exec).Launch<KernelId::kAddRows>(LanesGrid(out.count), out, exec.stream);
}

void LaunchGather(const GatherOp::Params& p, const Exec& exec) {
  GatherParams out = {};
  out.x = p.x.data;
  out.ids = p.ids.data();
  out.y = p.y.data;
  out.x_row_bytes = p.x.stride[0] * SizeOf(p.x.dtype);
  out.m = static_cast<int32_t>(p.y.shape[0]);
  out.d = static_cast<int32_t>(p.y.shape[1]);
  out.x_type = p.x.dtype;
  out.y_type = p.y.dtype;
  out.scale = p.scale;
  KernelsOf(exec).Launch<KernelId::kGather>(LanesGrid(p.y.elements()), out, exec.stream);
}

void LaunchCast(const CastOp::Params& p, const Exec& exec) {
  static_assert(CastParams::kRank == kMaxRank);
  CastParams out = {};
  out.x = p.x.Ptr<const float>();
  out.y = p.y.data;
  out.y_type = p.y.dtype;
  std::fill(std::begin(out.shape), std::end(out.shape), 1);
  const auto first = static_cast<size_t>(kMaxRank - p.x.rank);
  for (size_t i = 0; i < static_cast<size_t>(p.x.rank); ++i) {
    out.shape[first + i] = static_cast<int32_t>(p.x.shape[i]);
    out.x_stride[first + i] = p.x.stride[i];
    out.y_stride[first + i] = p.y.stride[i];
  }
  KernelsOf(exec).Launch<KernelId::kCast>(LanesGrid(p.x.elements()), out, exec.stream);
}

void LaunchQuantizeRows(const QuantizeRowsOp::Params& p, const Exec& exec) {
  QuantizeRowsParams out = {};
  out.x = p.x.Ptr<const float>();
  out.y = p.y.Ptr<signed char>();
  out.scale = p.scale.Ptr<float>();
  out.x_stride = p.x.stride[0];
  out.y_stride = p.y.stride[0];
  out.scale_stride = p.scale.stride[0];
  out.m = static_cast<int32_t>(p.x.shape[0]);
  out.k = static_cast<int32_t>(p.x.shape[1]);
  out.group = static_cast<int32_t>(p.group);
  const Grid grid = WarpsGrid(p.x.shape[0] * CeilDiv(p.x.shape[1], p.group));
  KernelsOf(exec).Launch<KernelId::kQuantizeRows>(grid, out, exec.stream);
}

void LaunchQueryTemperature(const QueryTemperatureOp::Params& p, const Exec& exec) {
  QueryTemperatureParams out = {};
  out.positions = p.positions.data();
  out.x = p.x.Ptr<float>();
  out.stride = p.x.stride[0];
  out.period = p.period;
  out.beta = p.beta;
  out.t = static_cast<int32_t>(p.x.shape[0]);
  out.width = static_cast<int32_t>(p.x.shape[1]);
  KernelsOf(exec).Launch<KernelId::kQueryTemperature>(WarpsGrid(out.t), out, exec.stream);
}

void LaunchFiniteRows(const FiniteRowsOp::Params& p, const Exec& exec) {
  FiniteRowsParams out = {};
  out.x = p.x.Ptr<const float>();
  out.finite = p.finite.data();
  out.stride = p.x.stride[0];
  out.m = static_cast<int32_t>(p.x.shape[0]);
  out.d = static_cast<int32_t>(p.x.shape[1]);
  KernelsOf(exec).Launch<KernelId::kFiniteRows>(WarpsGrid(out.m), out, exec.stream);
}

void LaunchPackDrafts(const PackDraftsOp::Params& p, const Exec& exec) {
  PackDraftsParams out = {};
  out.x = p.x.Ptr<const float>();
  out.slots = p.slots.data();
  out.y = p.y.Ptr<float>();
  out.x_stride = p.x.stride[0];
  out.y_stride = p.y.stride[0];
  out.m = static_cast<int32_t>(p.x.shape[0]);
  out.d = static_cast<int32_t>(p.x.shape[1]);
  KernelsOf(exec).Launch<KernelId::kPackDrafts>(WarpsGrid(out.m), out, exec.stream);
}

}  // namespace latte::cuda

#include <algorithm>

#include "src/base/math.h"
#include "src/kernels/cuda/launch/launch.h"

namespace latte::cuda {

void LaunchAppend(const AppendOp::Params& p, const Exec& exec) {
  AppendParams out = {};
  out.first = p.first.Ptr<const float>();
  out.first_stride = p.first.stride[0];
  if (!p.second.empty()) {
    out.second = p.second.Ptr<const float>();
    out.second_stride = p.second.stride[0];
  }
  const AppendOp::Shape s = AppendOp::ShapeOf(p);
  out.slots = p.slots.data();
  out.cache = CacheRowsOf(p.pages, p.row_format, s.first, s.second);
  out.t = static_cast<int32_t>(s.t);
  KernelsOf(exec).Launch<KernelId::kAppend>(WarpsGrid(s.t), out, exec.stream);
}

void LaunchNormRopeAppend(const NormRopeAppendOp::Params& p, const Exec& exec) {
  const NormRopeAppendOp::Shape s = NormRopeAppendOp::ShapeOf(p);
  NormRopeAppendParams out = {};
  out.latent = p.latent.Ptr<float>();
  out.q_rope = p.q_rope.Ptr<float>();
  out.latent_stride = p.latent.stride[0];
  out.rope_stride = p.q_rope.stride[0];
  out.rope_head = p.q_rope.stride[1];
  out.w = p.w.data;
  if (!p.cos.empty()) {
    out.cos = p.cos.Ptr<const float>();
    out.sin = p.sin.Ptr<const float>();
  }
  if (!p.pages.empty()) {
    out.cache = CacheRowsOf(p.pages, p.row_format, s.c, s.r);
    out.slots = p.slots.data();
  }
  out.t = static_cast<int32_t>(s.t);
  out.h = static_cast<int32_t>(s.h);
  out.c = static_cast<int32_t>(s.c);
  out.r = static_cast<int32_t>(s.r);
  out.interleaved = p.interleaved ? 1 : 0;
  out.w_type = p.w.dtype;
  out.eps = p.eps;
  KernelsOf(exec).Launch<KernelId::kNormRopeAppend>(WarpsGrid(s.t), out, exec.stream);
}

void LaunchGatherPages(const GatherPagesOp::Params& p, const Exec& exec) {
  GatherPagesParams out = {};
  const GatherPagesOp::Shape s = GatherPagesOp::ShapeOf(p);
  const bool is_plain = s.kind == CacheFormat::kPlain;  // then c says nothing
  out.cache = CacheRowsOf(p.pages, p.row_format, is_plain ? s.w : s.c, is_plain ? 0 : s.w - s.c);
  out.pages = p.page_table.data();
  out.y = p.y.Ptr<float>();
  out.key_begin = p.key_begin;
  out.s = static_cast<int32_t>(s.s);
  KernelsOf(exec).Launch<KernelId::kGatherPages>(LanesGrid(p.y.elements()), out, exec.stream);
}

void LaunchCopyPage(const CopyPageOp::Params& p, const Exec& exec) {
  const CopyPageOp::Shape s = CopyPageOp::ShapeOf(p);
  const auto bytes_at = [&](int32_t page) { return page < 0 ? -1 : page * s.page_bytes; };
  CopyPageParams out = {};
  out.from = bytes_at(p.from);
  out.to = bytes_at(p.to);
  out.page_bytes = s.page_bytes;
  constexpr size_t kMost = CopyPageParams::kMostLayers;
  for (size_t begin = 0; begin < p.layers.size(); begin += kMost) {
    const size_t count = std::min(kMost, p.layers.size() - begin);
    for (size_t i = 0; i < count; ++i)
      out.layers[i] = reinterpret_cast<unsigned char*>(p.layers[begin + i].data);
    out.packed = reinterpret_cast<unsigned char*>(p.packed.data()) +
                 static_cast<int64_t>(begin) * s.page_bytes;
    KernelsOf(exec).Launch<KernelId::kCopyPage>(
        {LanesGrid(s.page_bytes).x, static_cast<int64_t>(count)}, out, exec.stream);
  }
}

}  // namespace latte::cuda

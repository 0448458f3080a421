#include "src/engine/step/page_bytes.h"

#include "src/base/check.h"
#include "src/kernels/params/step_rows.h"
#include "src/kernels/registry.h"

namespace latte {
namespace {

void CheckPage(const LatentCache& cache, int32_t page) {
  LATTE_CHECK(page >= 0 && page < cache.pages(), "page {} of {}", page, cache.pages());
}

// Calls visit(layers) for every stream that has rows.
template <class Visit>
void ForEachStream(const LatentCache& cache, const Visit& visit) {
  std::vector<TensorView> layers;
  for (const CacheStream& stream : cache.spec().streams) {
    layers.clear();
    for (int64_t layer = 0; layer < cache.spec().layers; ++layer)
      if (stream.HasRows(layer)) layers.push_back(cache.View(stream.id, layer));
    if (!layers.empty()) visit(std::span<const TensorView>(layers));
  }
}

// Between a page and its packed bytes. from, to: as CopyPageOp.
void CopyPacked(const LatentCache& cache, int32_t from, int32_t to, std::span<std::byte> packed,
                const Exec& exec) {
  ForEachStream(cache, [&](std::span<const TensorView> layers) {
    const CopyPageOp::Shape s = CopyPageOp::ShapeOf({.layers = layers});
    const auto bytes = static_cast<size_t>(s.layers * s.page_bytes);
    Run<CopyPageOp>({layers, from, to, packed.first(bytes)}, exec);
    packed = packed.subspan(bytes);
  });
}

}  // namespace

void CopyPage(const LatentCache& cache, int32_t from, int32_t to, const Exec& exec) {
  CheckPage(cache, from), CheckPage(cache, to);
  if (from == to) return;
  ForEachStream(cache, [&](std::span<const TensorView> layers) {
    Run<CopyPageOp>({.layers = layers, .from = from, .to = to}, exec);
  });
}

std::vector<std::byte> SavePage(const LatentCache& cache, int32_t page, Workspace& workspace,
                                const Exec& exec) {
  CheckPage(cache, page);
  std::vector<std::byte> bytes(static_cast<size_t>(cache.spec().bytes_per_page()));
  if (cache.device().is_host()) {
    CopyPacked(cache, page, -1, bytes, exec);
    return bytes;
  }
  const Workspace::Scope scope(workspace);
  const TensorView packed = workspace.Take(DType::kU8, {std::ssize(bytes)});
  CopyPacked(cache, page, -1, {packed.data, bytes.size()}, exec);
  cache.device().CopyToHost(bytes.data(), packed.data, std::ssize(bytes), exec.stream);
  return bytes;
}

void LoadPage(const LatentCache& cache, int32_t page, std::span<const std::byte> bytes,
              Workspace& workspace, const Exec& exec) {
  CheckPage(cache, page);
  LATTE_CHECK(std::ssize(bytes) == cache.spec().bytes_per_page(), "{} bytes for a page of {}",
              bytes.size(), cache.spec().bytes_per_page());
  // Only read.
  const std::span<std::byte> given(const_cast<std::byte*>(bytes.data()), bytes.size());
  if (cache.device().is_host()) return CopyPacked(cache, -1, page, given, exec);
  const Workspace::Scope scope(workspace);
  const TensorView packed = workspace.Take(DType::kU8, {std::ssize(bytes)});
  cache.device().CopyFromHost(packed.data, bytes.data(), std::ssize(bytes), exec.stream);
  CopyPacked(cache, -1, page, {packed.data, bytes.size()}, exec);
}

}  // namespace latte

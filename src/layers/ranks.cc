#include "src/layers/ranks.h"

#include <fmt/format.h>

#include "src/comm/communicator.h"
#include "src/kernels/registry.h"

namespace latte {
namespace {

int64_t RankCount(const StepContext& step) {
  return step.tensor_ranks == nullptr ? 1 : step.tensor_ranks->size();
}

RankShare ShareOfRank(const StepContext& step) {
  return {step.tensor_ranks->rank(), step.tensor_ranks->size()};
}

// How many of `n` columns in units of `unit` a rank has.
int64_t WidthOf(int64_t rank, int64_t ranks, int64_t n, int64_t unit) {
  const WeightSlice slice = RankShare{rank, ranks}.Rows(unit);
  return slice.End(n) - slice.Begin(n);
}

// The parts of all ranks, side by side in `all` [M, N].
void GatherParts(const TensorView& mine, const TensorView& all, int64_t unit, Communicator& ranks,
                 StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  LATTE_CHECK(workspace.device().is_host(), "ranks exchange rows in host memory");
  const int64_t count = ranks.size();
  std::vector<int64_t> bytes;
  for (int64_t r = 0; r < count; ++r)
    bytes.push_back(all.shape[0] * WidthOf(r, count, all.shape[1], unit) * SizeOf(DType::kF32));
  const TensorView parts = workspace.Take(DType::kF32, {all.elements()});
  const auto span_of = [](const TensorView& t) {
    return std::span(t.Ptr<float>(), static_cast<size_t>(t.elements()));
  };
  ranks.AllGather(std::as_bytes(span_of(mine)), bytes, std::as_writable_bytes(span_of(parts)));
  JoinColumns(parts, count, unit, all, step);
}

}  // namespace

KeyOwner OwnerOf(const StepContext& step) {
  if (step.cache_ranks == nullptr) return {};
  return {step.cache_ranks->rank(), step.cache_ranks->size()};
}

std::string_view Name(ExpertExchange exchange) {
  switch (exchange) {
    case ExpertExchange::kAuto:
      return "auto";
    case ExpertExchange::kGather:
      return "gather";
    case ExpertExchange::kPadded:
      return "padded";
    case ExpertExchange::kAllToAll:
      return "all-to-all";
  }
  return "?";
}

Result<ExpertExchange> ParseExpertExchange(std::string_view text) {
  for (const ExpertExchange exchange : {ExpertExchange::kAuto, ExpertExchange::kGather,
                                        ExpertExchange::kPadded, ExpertExchange::kAllToAll})
    if (text == Name(exchange)) return exchange;
  return InvalidArgument(fmt::format(
      "expert-exchange: expected auto, gather, padded or all-to-all, found '{}'", text));
}

void JoinColumns(const TensorView& parts, int64_t ranks, int64_t unit, const TensorView& y,
                 StepContext& step) {
  const int64_t rows = y.shape[0];
  if (rows == 0) return;
  auto* from = parts.Ptr<float>();
  int64_t column = 0;
  for (int64_t r = 0; r < ranks; ++r) {
    const int64_t width = WidthOf(r, ranks, y.shape[1], unit);
    if (width > 0)
      Run<CastOp>(
          {TensorView(from, DType::kF32, {rows, width}), y.Slice(1, column, column + width)},
          step.exec);
    column += width;
    from += rows * width;
  }
}

void GatherRows(const TensorView& y, std::span<const int64_t> begins, Communicator& ranks) {
  LATTE_CHECK(std::ssize(begins) == ranks.size() + 1 && y.stride[0] == y.shape[1],
              "{} ranks gather rows of {}", ranks.size(), begins.size() - 1);
  const int64_t row_bytes = y.shape[1] * SizeOf(DType::kF32);
  std::vector<int64_t> bytes;
  for (size_t r = 0; r + 1 < begins.size(); ++r)
    bytes.push_back((begins[r + 1] - begins[r]) * row_bytes);
  const std::span<std::byte> all = std::as_writable_bytes(
      std::span(y.Ptr<float>(), static_cast<size_t>(begins.back() * y.shape[1])));
  const auto rank = static_cast<size_t>(ranks.rank());
  ranks.AllGather(
      all.subspan(static_cast<size_t>(begins[rank] * row_bytes), static_cast<size_t>(bytes[rank])),
      bytes, all);
}

TensorView GatherColumns(const TensorView& mine, int64_t n, Communicator& ranks, StepContext& step,
                         int64_t unit) {
  if (ranks.size() == 1) return mine;
  const TensorView all = step.workspace->Take(DType::kF32, {mine.shape[0], n});
  GatherParts(mine, all, unit, ranks, step);
  return all;
}

TensorView GatherColumns(const TensorView& mine, int64_t n, StepContext& step) {
  return step.tensor_ranks == nullptr ? mine : GatherColumns(mine, n, *step.tensor_ranks, step);
}

TensorView ShareOf(const TensorView& y, StepContext& step) {
  if (RankCount(step) == 1) return y;
  return step.workspace->Take(DType::kF32, {y.shape[0], ShareOfRank(step).Of(y.shape[1])});
}

void GatherShares(const TensorView& share, const TensorView& y, StepContext& step) {
  if (RankCount(step) > 1) GatherParts(share, y, /*unit=*/1, *step.tensor_ranks, step);
}

void ApplyShared(const Linear& linear, const TensorView& x, const TensorView& y,
                 StepContext& step) {
  const Workspace::Scope scope(*step.workspace);
  const TensorView share = ShareOf(y, step);
  Apply(linear, x, share, step);
  GatherShares(share, y, step);
}

}  // namespace latte

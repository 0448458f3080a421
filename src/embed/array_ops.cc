#include "src/embed/array_ops.h"

#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/limits/out_of_memory.h"
#include "src/base/math.h"
#include "src/kernels/registry.h"

namespace latte {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 40;
constexpr int64_t kMostOfASize = int64_t{1} << 31;

struct NamedSize {
  std::string_view name;
  int64_t value;
};

// Each size is positive and fits 32 bits.
Status CheckSizes(std::initializer_list<NamedSize> sizes) {
  for (const auto& [name, value] : sizes)
    if (value < 1 || value >= kMostOfASize)
      return InvalidArgument(
          fmt::format("{}: expected a size of at least 1, found {}", name, value));
  return {};
}

Status CheckElements(std::string_view name, std::initializer_list<int64_t> dims) {
  double elements = 1;
  for (const int64_t dim : dims) elements *= static_cast<double>(dim);
  if (elements <= static_cast<double>(kMostElements)) return {};
  return InvalidArgument(
      fmt::format("{}: expected at most 2^40 numbers, found {}", name, elements));
}

Status CheckScale(float scale) {
  if (std::isfinite(scale) && scale > 0) return {};
  return InvalidArgument(fmt::format("scale: expected a positive number, found {}", scale));
}

TensorView Given(const float* at, std::initializer_list<int64_t> dims) {
  return {const_cast<float*>(at), DType::kF32, dims};  // kernels do not write their inputs
}

// `from` rounded to `dtype`, or itself.
TensorView Rounded(const TensorView& from, DType dtype, Tensor* kept) {
  if (dtype == DType::kF32) return from;
  *kept = Tensor(dtype, std::span(from.shape.data(), static_cast<size_t>(from.rank)));
  RoundTo16(from.Ptr<float>(), from.elements(), dtype, kept->Ptr<uint16_t>());
  return kept->view();
}

Status CheckDType(DType dtype) {
  if (dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16) return {};
  return InvalidArgument("dtype: expected f32, bf16 or f16");
}

Status CheckPages(const MlaDecodeArrays& a) {
  const int64_t p = a.page_tokens;
  if (p < 16 || p > 256 || (p & (p - 1)) != 0)
    return InvalidArgument(
        fmt::format("pages: expected 16, 32, 64, 128 or 256 tokens per page, found {}", p));
  for (size_t b = 0; b < a.lengths.size(); ++b) {
    const int64_t needed = CeilDiv(a.lengths[b], p);
    if (needed > a.page_table_width)
      return InvalidArgument(
          fmt::format("page_table[{}]: expected {} pages for {} tokens, found {}", b, needed,
                      a.lengths[b], a.page_table_width));
    for (int64_t i = 0; i < needed; ++i) {
      const int32_t page = a.page_table[static_cast<int64_t>(b) * a.page_table_width + i];
      if (page < 0 || page >= a.page_count)
        return InvalidArgument(fmt::format(
            "page_table[{}][{}]: expected a page in [0, {}), found {}", b, i, a.page_count, page));
    }
  }
  return {};
}

Status CheckSequences(const MlaDecodeArrays& a) {
  int64_t rows = 0;
  for (size_t b = 0; b < a.lengths.size(); ++b) {
    const int64_t length = a.lengths[b];
    if (length < 1 || length >= kMostOfASize)
      return InvalidArgument(
          fmt::format("lengths[{}]: expected at least 1 token, found {}", b, length));
    if (a.new_tokens[b] < 1 || a.new_tokens[b] > length)
      return InvalidArgument(
          fmt::format("new_tokens[{}]: expected 1 to {}, found {}", b, length, a.new_tokens[b]));
    rows += a.new_tokens[b];
  }
  if (rows == a.t) return {};
  return InvalidArgument(
      fmt::format("new_tokens: expected {} in all, as q_latent has rows, found {}", a.t, rows));
}

Status CheckDecode(const MlaDecodeArrays& a) {
  LATTE_RETURN_IF_ERROR(CheckDType(a.dtype));
  LATTE_RETURN_IF_ERROR(CheckScale(a.scale));
  LATTE_RETURN_IF_ERROR(CheckSizes({{"T", a.t},
                                    {"H", a.h},
                                    {"C", a.c},
                                    {"R", a.r},
                                    {"B", std::ssize(a.lengths)},
                                    {"pages", a.page_count},
                                    {"page_table", a.page_table_width}}));
  LATTE_RETURN_IF_ERROR(CheckElements("q_latent", {a.t, a.h, a.c + a.r}));
  LATTE_RETURN_IF_ERROR(CheckElements("pages", {a.page_count, a.page_tokens, a.c + a.r}));
  LATTE_RETURN_IF_ERROR(CheckSequences(a));
  return CheckPages(a);
}

std::vector<SequenceChunk> ChunksOf(const MlaDecodeArrays& a) {
  std::vector<SequenceChunk> out;
  int64_t row = 0;
  for (size_t b = 0; b < a.lengths.size(); ++b) {
    SequenceChunk& chunk = out.emplace_back();
    chunk.query_start = row;
    chunk.count = a.new_tokens[b];
    chunk.cached_len = a.lengths[b] - chunk.count;
    chunk.pages = {a.page_table + static_cast<int64_t>(b) * a.page_table_width,
                   static_cast<size_t>(CeilDiv(a.lengths[b], a.page_tokens))};
    row += chunk.count;
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<ArrayOps>> ArrayOps::Create(int threads) {
  if (threads < 0 || threads > 4096)
    return InvalidArgument(fmt::format("threads: expected 0 to 4096, found {}", threads));
  LATTE_ASSIGN_OR_RETURN(Machine machine, Machine::Detect());
  return CatchExhaustion([&]() -> Result<std::unique_ptr<ArrayOps>> {
    return std::unique_ptr<ArrayOps>(new ArrayOps(std::move(machine), threads));
  });
}

template <class Op>
void ArrayOps::Run(const typename Op::Params& params) {
  const Exec exec{.threads = &threads_, .machine = &machine_};
  Select<Op>(Op::ShapeOf(params), machine_).run(params, exec);
}

Status ArrayOps::Gemm(const GemmArrays& a) {
  LATTE_RETURN_IF_ERROR(CheckDType(a.dtype));
  LATTE_RETURN_IF_ERROR(CheckSizes({{"M", a.m}, {"N", a.n}, {"K", a.k}}));
  LATTE_RETURN_IF_ERROR(CheckElements("x", {a.m, a.k}));
  LATTE_RETURN_IF_ERROR(CheckElements("w", {a.n, a.k}));
  LATTE_RETURN_IF_ERROR(CheckElements("y", {a.m, a.n}));
  return CatchExhaustion([&]() -> Status {
    Tensor kept;
    const GemmProblem problem{.x = Given(a.x, {1, a.m, a.k}),
                              .w = Rounded(Given(a.w, {1, a.n, a.k}), a.dtype, &kept),
                              .bias = {},
                              .y = Given(a.y, {1, a.m, a.n}),
                              .x_scale = {},
                              .gate = {}};
    Run<GemmOp>({{&problem, 1}});
    return {};
  });
}

Status ArrayOps::MlaDecode(const MlaDecodeArrays& a) {
  LATTE_RETURN_IF_ERROR(CheckDecode(a));
  return CatchExhaustion([&]() -> Status {
    Tensor kept;
    const std::vector<SequenceChunk> sequences = ChunksOf(a);
    const TensorView pages = Given(a.pages, {a.page_count, a.page_tokens, a.c + a.r});
    Run<MlaDecodeOp>({.q_latent = Given(a.q_latent, {a.t, a.h, a.c}),
                      .q_rope = Given(a.q_rope, {a.t, a.h, a.r}),
                      .pages = Rounded(pages, a.dtype, &kept),
                      .sequences = sequences,
                      .o_latent = Given(a.o_latent, {a.t, a.h, a.c}),
                      .lse = Given(a.lse, {a.t, a.h}),
                      .scale = a.scale});
    return {};
  });
}

Status ArrayOps::MlaPrefill(const MlaPrefillArrays& a) {
  LATTE_RETURN_IF_ERROR(CheckDType(a.dtype));
  LATTE_RETURN_IF_ERROR(CheckScale(a.scale));
  LATTE_RETURN_IF_ERROR(
      CheckSizes({{"T", a.t}, {"S", a.s}, {"H", a.h}, {"N", a.n}, {"R", a.r}, {"V", a.v_width}}));
  LATTE_RETURN_IF_ERROR(CheckElements("q_nope", {a.t, a.h, a.n + a.r}));
  LATTE_RETURN_IF_ERROR(CheckElements("k_nope", {a.s, a.h, a.n + a.v_width}));
  if (a.s < a.t)
    return InvalidArgument(
        fmt::format("S: expected at least the {} keys of the queries, found {}", a.t, a.s));
  return CatchExhaustion([&]() -> Status {
    TensorView k_rope = Given(a.k_rope, {a.s, a.h, a.r});
    k_rope.stride = {a.r, 0, 1};
    Run<MhaOp>({.q_nope = Given(a.q_nope, {a.t, a.h, a.n}),
                .q_rope = Given(a.q_rope, {a.t, a.h, a.r}),
                .k_nope = Given(a.k_nope, {a.s, a.h, a.n}),
                .k_rope = k_rope,
                .v = Given(a.v, {a.s, a.h, a.v_width}),
                .q_begin = a.s - a.t,
                .o = Given(a.o, {a.t, a.h, a.v_width}),
                .lse = Given(a.lse, {a.t, a.h}),
                .scale = a.scale,
                .arithmetic = a.dtype});
    return {};
  });
}

}  // namespace latte

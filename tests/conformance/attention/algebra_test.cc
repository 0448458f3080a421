// Absorbed ≡ expanded, on the reference: moving W_UK into q and W_UV out of o changes only the
// order of exact sums.
#include <gtest/gtest.h>

#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/run_kernels.h"
#include "tests/conformance/support/tolerance.h"

namespace latte::algebra_test {
namespace {

struct Sizes {
  int64_t tokens, heads, c, n, r, v;
};

// One sequence of `tokens` new tokens in one page.
struct Layer {
  explicit Layer(const Sizes& s, std::mt19937& rng)
      : q_nope(DType::kF32, {s.tokens, s.heads, s.n}),
        q_rope(DType::kF32, {s.tokens, s.heads, s.r}),
        page(DType::kF32, {1, s.tokens, s.c + s.r}),
        w_uk(DType::kF32, {s.heads, s.n, s.c}),
        w_uv(DType::kF32, {s.heads, s.v, s.c}) {
    for (const TensorView& t :
         {q_nope.view(), q_rope.view(), page.view(), w_uk.view(), w_uv.view()})
      FillRandom(t, rng);
  }
  Tensor q_nope, q_rope, page, w_uk, w_uv;
};

TensorView HeadsFirst(TensorView m) {
  std::swap(m.shape[0], m.shape[1]);
  std::swap(m.stride[0], m.stride[1]);
  return m;
}

constexpr float kScale = 0.05f;

void Absorbed(const Sizes& s, const Layer& layer, const TensorView& o, const TensorView& lse) {
  const Tensor q_latent(DType::kF32, {s.tokens, s.heads, s.c});
  const Tensor o_latent(DType::kF32, {s.tokens, s.heads, s.c});
  RunRef<GemmTOp>({HeadsFirst(layer.q_nope), layer.w_uk, HeadsFirst(q_latent)});
  const std::vector<int32_t> table = {0};
  const SequenceChunk sequence = {.count = s.tokens, .pages = table};
  RunRef<MlaDecodeOp>({q_latent, layer.q_rope, layer.page, {&sequence, 1}, o_latent, lse, kScale});
  RunRefPart({HeadsFirst(o_latent), layer.w_uv, TensorView(), HeadsFirst(o)});
}

void Expanded(const Sizes& s, const Layer& layer, const TensorView& o, const TensorView& lse) {
  const Tensor k_nope(DType::kF32, {s.tokens, s.heads, s.n});
  const Tensor v(DType::kF32, {s.tokens, s.heads, s.v});
  TensorView latents = layer.page.view();  // [H, S, C], the same for every head
  latents.shape = {s.heads, s.tokens, s.c};
  latents.stride[0] = 0;
  RunRefPart({latents, layer.w_uk, TensorView(), HeadsFirst(k_nope)});
  RunRefPart({latents, layer.w_uv, TensorView(), HeadsFirst(v)});
  TensorView k_rope = layer.page.view().Slice(2, s.c, s.c + s.r);
  k_rope.shape = {s.tokens, s.heads, s.r};
  k_rope.stride = {s.c + s.r, 0, 1};
  RunRef<MhaOp>({layer.q_nope, layer.q_rope, k_nope, k_rope, v, 0, 0, o, lse, kScale});
}

TEST(Algebra, AbsorbedIsExpanded) {
  std::mt19937 rng(9);
  for (int round = 0; round < 20; ++round) {
    const auto pick = [&](int64_t most) {
      return static_cast<int64_t>(rng() % static_cast<uint32_t>(most)) + 1;
    };
    const Sizes s = {pick(40), pick(5), pick(90), pick(40), pick(20), pick(40)};
    SCOPED_TRACE(
        fmt::format("T={} H={} C={} N={} R={} V={}", s.tokens, s.heads, s.c, s.n, s.r, s.v));
    const Layer layer(s, rng);
    const Tensor absorbed(DType::kF32, {s.tokens, s.heads, s.v});
    const Tensor expanded(DType::kF32, {s.tokens, s.heads, s.v});
    const Tensor absorbed_lse(DType::kF32, {s.tokens, s.heads});
    const Tensor expanded_lse(DType::kF32, {s.tokens, s.heads});
    Absorbed(s, layer, absorbed, absorbed_lse);
    Expanded(s, layer, expanded, expanded_lse);
    // Sums are in fp64. Each form rounds three values to f32: q_latent or k_nope, each at most N
    // (or C) in size, which changes a score by u·scale·(N·C); o_latent or v, at most C in an
    // output; and the output and lse.
    const double score = kUnit * static_cast<double>(kScale) * static_cast<double>(s.n * s.c);
    const double weights = std::expm1(2 * 2 * score);
    const double width = static_cast<double>(s.c);  // the largest |v|
    ASSERT_TRUE(Close(absorbed, expanded,
                      [&](int64_t, int64_t, int64_t) { return (weights + 4 * kUnit) * width; }));
    ASSERT_TRUE(Close(absorbed_lse, expanded_lse, [&](int64_t t, int64_t h, int64_t) {
      return 2 * score + 2 * kUnit * std::abs(static_cast<double>(GetValue(expanded_lse, t, h)));
    }));
  }
}

}  // namespace
}  // namespace latte::algebra_test

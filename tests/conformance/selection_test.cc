// The rules of selection: which kernel serves a shape on which machine. Nothing runs, so every
// instruction set is tested on every machine.
#include <memory>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/kernels/cpu/targets.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/params/indexer.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/registry.h"

namespace latte::selection_test {
namespace {

constexpr Isa kRef = Isa::kRef, kAvx2 = x86::kAvx2, kAvx512 = x86::kAvx512,
              kAvx512Vnni = x86::kAvx512Vnni, kAvx512Bf16 = x86::kAvx512Bf16, kAmx = x86::kAmx;
constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16, kI8 = DType::kI8, kU4 = DType::kU4,
                kF8 = DType::kF8E4M3, kQ4K = DType::kQ4_K;

Machine MachineOf(Isa isa, Uarch uarch) { return {.isa = isa, .uarch = uarch}; }

struct GemmChoice {
  Isa isa;
  Uarch uarch;
  GemmOp::Shape shape;
  std::string_view name;
};

GemmOp::Shape Plain(int64_t m, int64_t k, DType x, DType w) { return {1, m, 512, k, x, w}; }
GemmOp::Shape Scaled(int64_t m, int64_t k, DType x, DType w, int64_t group) {
  return {1, m, 512, k, x, w, x == kI8 ? 128 : 0, group};
}

TEST(Selection, Gemm) {
  using enum Uarch;
  const GemmChoice choices[] = {
      {kRef, kOther, Plain(1, 64, kF32, kF32), "ref.gemm"},
      {kAvx2, kOther, Plain(1, 64, kF32, kBF16), "avx2.gemm_f32"},
      {kAvx2, kIntelBf16, Plain(3, 64, kF32, kBF16), "avx2.gemm_f32_streams"},
      {kAvx2, kIntelBf16, Plain(4, 64, kF32, kBF16), "avx2.gemm_f32"},
      {kAvx2, kIntelBf16, Scaled(3, 64, kF32, kF8, 64), "avx2.gemm_f32"},
      {kAvx2, kOther, Scaled(4, 2048, kI8, kI8, 128), "avx2.gemm_s8_gemv"},
      {kAvx2, kOther, Scaled(5, 2048, kI8, kI8, 128), "avx2.gemm_s8_packed64"},
      {kAvx2, kOther, Scaled(5, 2048, kI8, kI8, 64), "avx2.gemm_f32"},
      {kAvx512, kIntelBf16, Plain(6, 64, kF32, kBF16), "avx512.gemm_f32_streams"},
      {kAvx512, kIntelBf16, Plain(7, 64, kF32, kBF16), "avx512.gemm_f32"},
      {kAvx512, kOther, Scaled(4, 2048, kI8, kI8, 128), "avx512.gemm_f32"},

      // s8: A stays in the L1 while rows of B pass one by one.
      {kAvx512Vnni, kOther, Scaled(1, 2048, kI8, kI8, 2048), "avx512_vnni.gemm_s8_gemv"},
      {kAvx512Vnni, kOther, Scaled(1, 1024, kI8, kI8, 1024), "avx512_vnni.gemm_s8_16xm"},
      {kAvx512Vnni, kOther, Scaled(1, 1024, kI8, kU4, 32), "avx512_vnni.gemm_s8_gemv"},
      {kAvx512Vnni, kOther, Scaled(2, 2048, kI8, kU4, 32), "avx512_vnni.gemm_s8_16xm"},
      {kAvx512Vnni, kOther, Scaled(4, 4096, kI8, kI8, 128), "avx512_vnni.gemm_s8_gemv"},
      {kAvx512Vnni, kOther, Scaled(4, 4224, kI8, kI8, 128), "avx512_vnni.gemm_s8_16xm"},
      {kAvx512Vnni, kIntelBf16, Scaled(1, 2048, kI8, kI8, 2048), "avx512_vnni.gemm_s8_16xm"},
      // 8×8: one scale per row, on zen4.
      {kAvx512Vnni, kZen4, Scaled(5, 8192, kI8, kI8, 8192), "avx512_vnni.gemm_s8_8x8c8"},
      {kAvx512Vnni, kZen4, Scaled(8, 8192, kI8, kI8, 8192), "avx512_vnni.gemm_s8_8x8c8"},
      {kAvx512Vnni, kZen4, Scaled(4, 8192, kI8, kI8, 8192), "avx512_vnni.gemm_s8_16xm"},
      {kAvx512Vnni, kZen4, Scaled(9, 8192, kI8, kI8, 8192), "avx512_vnni.gemm_s8_16xm"},
      {kAvx512Vnni, kZen4, Scaled(5, 8320, kI8, kI8, 8320), "avx512_vnni.gemm_s8_16xm"},
      {kAvx512Vnni, kZen4, Scaled(5, 8192, kI8, kI8, 128), "avx512_vnni.gemm_s8_16xm"},
      {kAvx512Vnni, kOther, Scaled(5, 8192, kI8, kI8, 8192), "avx512_vnni.gemm_s8_16xm"},
      {kAvx512Vnni, kIntelBf16, Scaled(5, 8192, kI8, kI8, 8192), "avx512_vnni.gemm_s8_16xm"},
      // Rows of A in lanes, if they fill them.
      {kAvx512Vnni, kOther, Scaled(12, 2048, kI8, kI8, 128), "avx512_vnni.gemm_s8_16xm"},
      {kAvx512Vnni, kOther, Scaled(13, 2048, kI8, kI8, 128), "avx512_vnni.gemm_s8_packed64"},
      {kAvx512Vnni, kOther, Scaled(14, 2048, kI8, kI8, 128), "avx512_vnni.gemm_s8_bcast"},
      {kAvx512Vnni, kOther, Scaled(17, 2048, kI8, kI8, 128), "avx512_vnni.gemm_s8_packed64"},
      {kAvx512Vnni, kOther, Scaled(16, 2048, kI8, kU4, 128), "avx512_vnni.gemm_s8_packed64"},

      // bf16 × bf16.
      {kAvx512Bf16, kZen4, Plain(6, 2048, kBF16, kBF16), "avx512_bf16.gemm_bf16_small_m"},
      {kAvx512Bf16, kZen4, Plain(6, 2049, kBF16, kBF16), "avx512_bf16.gemm_bf16"},
      {kAvx512Bf16, kZen4, Plain(7, 64, kBF16, kBF16), "avx512_bf16.gemm_bf16"},
      {kAvx512Bf16, kZen4, Plain(15, 64, kBF16, kBF16), "avx512_bf16.gemm_bf16"},
      {kAvx512Bf16, kZen4, Plain(16, 64, kBF16, kBF16), "avx512_bf16.gemm_bf16_4x6"},
      {kAvx512Bf16, kZen4, Plain(95, 64, kBF16, kBF16), "avx512_bf16.gemm_bf16_4x6"},
      {kAvx512Bf16, kZen4, Plain(96, 64, kBF16, kBF16), "avx512_bf16.gemm_bf16_packed_3x8"},
      {kAvx512Bf16, kZen4, {1, 16, 5, 64, kBF16, kBF16}, "avx512_bf16.gemm_bf16"},
      {kAvx512Bf16, kIntelBf16, Plain(1, 64, kBF16, kBF16), "avx512.gemm_f32_streams"},
      {kAvx512Bf16, kIntelBf16, Plain(96, 64, kBF16, kBF16), "avx512.gemm_f32"},
      // bf16 × 8 and 4 bits.
      {kAvx512Bf16, kZen4, Scaled(1, 12288, kBF16, kF8, 128), "avx512_bf16.gemm_bf16_w8_gemv"},
      {kAvx512Bf16, kZen4, Scaled(1, 12289, kBF16, kF8, 128), "avx512_bf16.gemm_bf16_w8"},
      {kAvx512Bf16, kZen4, Scaled(2, 64, kBF16, kF8, 64), "avx512_bf16.gemm_bf16_w8"},
      {kAvx512Bf16, kIntelBf16, Scaled(6, 64, kBF16, kU4, 32), "avx512_bf16.gemm_bf16_w8_streams"},
      {kAvx512Bf16, kIntelBf16, Scaled(7, 64, kBF16, kU4, 32), "avx512_bf16.gemm_bf16_w8"},

      // Blocks of GGUF files.
      {kAvx2, kOther, Plain(1, 2048, kBF16, kQ4K), "avx2.gemm_f32"},
      {kAvx2, kIntelBf16, Plain(1, 2048, kF32, DType::kQ8_0), "avx2.gemm_f32"},
      {kAvx512Vnni, kOther, Plain(5, 2048, kBF16, kQ4K), "avx512.gemm_f32"},
      {kAvx512Bf16, kZen4, Plain(1, 2048, kBF16, kQ4K), "avx512.gemm_f32"},
      {kAmx, kIntelBf16, Plain(1, 2048, kBF16, kQ4K), "avx512.gemm_f32"},
      {kAmx, kIntelBf16, Plain(600, 2048, kBF16, DType::kMXFP4), "avx512.gemm_f32"},
      {kAmx, kIntelBf16, Plain(1, 1 << 17, kBF16, kQ4K), "avx512.gemm_f32"},
      {kAmx, kIntelBf16, Plain(1, (1 << 17) + 256, kBF16, kQ4K), "ref.gemm"},
      {kAmx, kIntelBf16, Plain(1, 2048, kI8, kQ4K), "ref.gemm"},

      // Tiles.
      {kAmx, kIntelBf16, Plain(32, 64, kBF16, kBF16), "amx.gemm_bf16_small_m"},
      {kAmx, kIntelBf16, Plain(33, 64, kBF16, kBF16), "amx.gemm_bf16"},
      {kAmx, kIntelBf16, Scaled(2, 256, kBF16, kF8, 128), "amx.gemm_fp8_gemv"},
      {kAmx, kIntelBf16, Scaled(3, 256, kBF16, kF8, 128), "amx.gemm_bf16_small_m"},
      {kAmx, kIntelBf16, Scaled(2, 256, kBF16, kI8, 256), "amx.gemm_bf16_small_m"},
      {kAmx, kIntelBf16, Scaled(1, 256, kBF16, kU4, 32), "avx512_bf16.gemm_bf16_w8_streams"},
      {kAmx, kIntelBf16, Scaled(5, 256, kI8, kI8, 128), "amx.gemm_s8_gemv"},
      {kAmx, kIntelBf16, Scaled(6, 256, kI8, kI8, 128), "amx.gemm_s8_small_m"},
      {kAmx, kIntelBf16, Scaled(8, 256, kI8, kU4, 32), "amx.gemm_s8_gemv"},
      {kAmx, kIntelBf16, Scaled(9, 256, kI8, kU4, 32), "amx.gemm_s8_small_m"},
      {kAmx, kIntelBf16, Scaled(33, 256, kI8, kI8, 128), "amx.gemm_s8"},
  };
  for (const GemmChoice& c : choices)
    EXPECT_EQ(Select<GemmOp>(c.shape, MachineOf(c.isa, c.uarch)).name, c.name)
        << Name(c.isa) << " " << Name(c.uarch) << " M=" << c.shape.m << " K=" << c.shape.k << " "
        << Name(c.shape.x) << "·" << Name(c.shape.w);
}

TEST(Selection, GemmT) {
  const auto name = [](Isa isa, int64_t m, DType x, DType w, int64_t group, int64_t rows) {
    const GemmTOp::Shape shape = {16, m, 128, 512, x, w, group, rows};
    return Select<GemmTOp>(shape, MachineOf(isa, Uarch::kZen4)).name;
  };
  EXPECT_EQ(name(x86::kAvx2, 4, kBF16, kBF16, 0, 0), "avx2.gemm_t_f32_small_m");
  EXPECT_EQ(name(x86::kAvx2, 5, kBF16, kBF16, 0, 0), "avx2.gemm_t_f32");
  EXPECT_EQ(name(x86::kAmx, 4, kBF16, kBF16, 0, 0), "avx512.gemm_t_f32_small_m");
  EXPECT_EQ(name(x86::kAmx, 5, kBF16, kBF16, 0, 0), "avx512.gemm_t_f32");
  EXPECT_EQ(name(x86::kAmx, 5, kBF16, kI8, 512, 1), "avx512_vnni.gemm_t_w8");
  EXPECT_EQ(name(x86::kAmx, 5, kF32, kI8, 512, 1), "avx512.gemm_t_f32");
  EXPECT_EQ(name(x86::kAmx, 5, kF32, kU4, 32, 1), "avx512_vnni.gemm_t_w4");
  EXPECT_EQ(name(x86::kAmx, 5, kBF16, kF8, 128, 128), "avx512_bf16.gemm_t_fp8");
  EXPECT_EQ(name(x86::kAmx, 5, kBF16, kF8, 128, 8), "avx512.gemm_t_f32");
  EXPECT_EQ(name(x86::kAmx, 5, kBF16, kQ4K, 0, 0), "ref.gemm_t");
}

TEST(Selection, MlaDecode) {
  const auto name = [](Isa isa, Uarch uarch, int64_t h, CacheFormat kind, int64_t page = 64,
                       DType cache = DType::kU8) {
    const MlaDecodeOp::Shape shape = {1, h, 512, 64, page, cache, kind};
    return Select<MlaDecodeOp>(shape, MachineOf(isa, uarch)).name;
  };
  using enum Uarch;
  using enum CacheFormat;
  EXPECT_EQ(name(kAvx2, kOther, 16, kPlain, 64, kBF16), "avx2.mla_decode");
  EXPECT_EQ(name(kAvx512Bf16, kZen4, 16, kPlain, 64, kBF16), "avx512_bf16.mla_decode_bf16");
  EXPECT_EQ(name(kAvx512Bf16, kIntelBf16, 16, kPlain, 64, kBF16), "avx512.mla_decode");
  EXPECT_EQ(name(kAvx512Bf16, kZen4, 16, kPlain, 64, kF32), "avx512.mla_decode");
  EXPECT_EQ(name(kAvx512Bf16, kZen4, 3, kF8), "avx512_bf16.mla_decode_small_h");
  EXPECT_EQ(name(kAvx512Bf16, kIntelBf16, 3, kF8), "avx512_bf16.mla_decode_small_h");
  EXPECT_EQ(name(kAvx512Bf16, kIntelBf16, 4, kF8), "avx512.mla_decode");
  EXPECT_EQ(name(kAvx512Bf16, kZen4, 3, kF8, 8), "avx512_bf16.mla_decode_bf16");
  EXPECT_EQ(name(kAvx512Bf16, kZen4, 3, kPlain, 64, kBF16), "avx512_bf16.mla_decode_bf16");
  EXPECT_EQ(name(kAvx512Bf16, kZen4, 16, kI8), "avx512_vnni.mla_decode");
  EXPECT_EQ(name(kAmx, kIntelBf16, 3, kF8Dense), "avx512_bf16.mla_decode_small_h");
  EXPECT_EQ(name(kAmx, kIntelBf16, 4, kF8Dense), "amx.mla_decode_bf16");
  EXPECT_EQ(name(kAmx, kIntelBf16, 3, kPlain, 64, kBF16), "amx.mla_decode_bf16");
  EXPECT_EQ(name(kAmx, kIntelBf16, 8, kQ6), "amx.mla_decode_bf16");
  EXPECT_EQ(name(kAmx, kIntelBf16, 7, kQ6), "avx512.mla_decode");
  EXPECT_EQ(name(kAmx, kIntelBf16, 16, kF8, 8), "avx512.mla_decode");
  EXPECT_EQ(name(kAmx, kIntelBf16, 16, kI8), "amx.mla_decode_s8");
  EXPECT_EQ(name(kAmx, kIntelBf16, 16, kI8, 8), "avx512_vnni.mla_decode");
}

TEST(Selection, IndexTopK) {
  const auto name = [](Isa isa, int64_t width) {
    const IndexTopKOp::Shape shape = {1, 64, width, 2048, 64, kBF16};
    return Select<IndexTopKOp>(shape, MachineOf(isa, Uarch::kOther)).name;
  };
  EXPECT_EQ(name(kRef, 128), "ref.index_topk");
  EXPECT_EQ(name(kAvx2, 128), "avx2.index_topk");
  EXPECT_EQ(name(kAvx512, 512), "avx512.index_topk");
  EXPECT_EQ(name(kAmx, 128), "avx512.index_topk");
  EXPECT_EQ(name(kAmx, 513), "ref.index_topk");
}

TEST(Selection, Mha) {
  const auto name = [](Isa isa, Uarch uarch, DType arithmetic) {
    const MhaOp::Shape shape = {512, 512, 16, 128, 64, 128, arithmetic};
    return Select<MhaOp>(shape, MachineOf(isa, uarch)).name;
  };
  EXPECT_EQ(name(x86::kAvx512Bf16, Uarch::kZen4, kBF16), "avx512_bf16.mha");
  EXPECT_EQ(name(x86::kAvx512Bf16, Uarch::kIntelBf16, kBF16), "avx512.mha");
  EXPECT_EQ(name(x86::kAmx, Uarch::kIntelBf16, kBF16), "amx.mha");
  EXPECT_EQ(name(x86::kAmx, Uarch::kIntelBf16, kF32), "avx512.mha");
}

// Shapes of every kind; f(shape) for each.
template <class F>
void ForEachGemmShape(const F& f) {
  for (const DType x : {kF32, kBF16, DType::kF16, kI8})
    for (const DType w : {kF32, kBF16, DType::kF16, kF8, DType::kF8E4M3Fnuz, kI8, kU4, kQ4K})
      for (const int64_t k : {64, 1024, 2048, 7168, 18432})
        for (const int64_t group : {int64_t{0}, int64_t{32}, int64_t{128}, k})
          for (const int64_t n : {1, 5, 6, 15, 16, 512})
            f(GemmOp::Shape{1, 1, n, k, x, w, x == kI8 ? 128 : 0, group});
}

// A row's result does not depend on the other rows.
TEST(Selection, TheOrderOfSumsDoesNotDependOnM) {
  for (const Isa isa : AllIsas())
    for (const Uarch uarch : kAllUarchs)
      ForEachGemmShape([&](GemmOp::Shape s) {
        const Machine machine = MachineOf(isa, uarch);
        const Kernel<GemmOp>& first = Select<GemmOp>(s, machine);
        for (const int64_t m :
             {2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17, 32, 33, 95, 96, 600}) {
          s.m = m;
          const Kernel<GemmOp>& kernel = Select<GemmOp>(s, machine);
          ASSERT_EQ(kernel.order, first.order) << first.name << " " << kernel.name << " M=" << m;
          ASSERT_EQ(kernel.isa, first.isa) << first.name << " " << kernel.name << " M=" << m;
        }
      });
}

// Every kernel runs where it is forced by name, and the group of a name keeps the choice inside it.
// Kernels that take bf16 weights alone are not chosen if the gate or the weight has another type.
TEST(Selection, KernelsReadTheTypesOfBothAWeightAndItsGate) {
  std::byte memory[64] = {};
  const auto view = [&](DType dtype) { return TensorView(memory, dtype, {1, 512, 2048}); };
  struct {
    DType w, gate, want;
  } const cases[] = {{kBF16, kBF16, kBF16},
                     {kBF16, kQ4K, kQ4K},
                     {kQ4K, kBF16, kQ4K},
                     {kBF16, kF32, kF32},
                     {kQ4K, DType::kQ6_K, kQ4K}};
  for (const auto& [w, gate, want] : cases) {
    GemmProblem p;
    p.x = view(kBF16);
    p.w = view(w);
    p.gate = view(gate);
    const GemmOp::Shape shape = GemmOp::ShapeOf(p);
    EXPECT_EQ(shape.w, want);
    const bool plain_bf16 = want == kBF16;
    EXPECT_EQ(Select<GemmOp>(shape, MachineOf(kAvx512Bf16, Uarch::kZen4)).order == "bf16x32",
              plain_bf16);
    EXPECT_EQ(Select<GemmOp>(shape, MachineOf(kAmx, Uarch::kIntelBf16)).order == "bf16 tiles",
              plain_bf16);
  }
}

TEST(Selection, EveryGemmKernelCanBeForced) {
  std::set<std::string_view> reached;
  for (const Kernel<GemmOp>& kernel : Kernels<GemmOp>()) {
    Machine machine = MachineOf(kernel.isa, Uarch::kOther);
    machine.forced_kernels = {std::string(kernel.name)};
    Machine group = machine;
    group.forced_kernels = {fmt::format("{}.gemm", Name(kernel.isa))};
    ForEachGemmShape([&](GemmOp::Shape s) {
      for (const int64_t m : {1, 5, 16, 64, 200}) {
        s.m = m;
        if (!kernel.supports(s)) continue;
        ASSERT_EQ(Select<GemmOp>(s, machine).name, kernel.name);
        ASSERT_EQ(Select<GemmOp>(s, group).isa, kernel.isa);
        reached.insert(kernel.name);
      }
    });
  }
  EXPECT_EQ(reached.size(), Kernels<GemmOp>().size());
}

// No kernel is dead: each serves some shape on some processor.
TEST(Selection, EveryGemmKernelServesSomething) {
  std::set<std::string_view> served;
  for (const Isa isa : AllIsas())
    for (const Uarch uarch : kAllUarchs)
      ForEachGemmShape([&](GemmOp::Shape s) {
        for (const int64_t m : {1, 3, 5, 8, 14, 17, 64, 200}) {
          s.m = m;
          served.insert(Select<GemmOp>(s, MachineOf(isa, uarch)).name);
        }
      });
  for (const Kernel<GemmOp>& kernel : Kernels<GemmOp>()) {
    if (kernel.isa.family == IsaFamily::kCuda) continue;
    EXPECT_TRUE(served.contains(kernel.name)) << kernel.name;
  }
}

// Peers of a kernel have its order, also where a faster kernel of another order exists.
TEST(Selection, PeersKeepTheOrder) {
  const Machine machine = MachineOf(x86::kAmx, Uarch::kIntelBf16);
  for (const Kernel<GemmOp>& kernel : Kernels<GemmOp>())
    ForEachGemmShape([&](const GemmOp::Shape& s) {
      const Kernel<GemmOp>& peer = SelectPeer<GemmOp>(kernel, s, machine);
      ASSERT_EQ(peer.order, kernel.order);
      ASSERT_EQ(peer.isa, kernel.isa);
    });
}

// The memo gives what Select gives, also when it has forgotten the oldest shapes.
TEST(Selections, GivesTheKernelsOfSelect) {
  const Machine machine{.isa = x86::kAmx, .uarch = Uarch::kIntelBf16};
  const auto selections = std::make_unique<Selections>();
  const auto shape = [](int64_t m) {
    return GemmOp::Shape{1, m, 64, 256, DType::kI8, DType::kI8, 128, 128};
  };
  for (int round = 0; round < 2; ++round)
    for (int64_t m = 1; m < 200; ++m)
      ASSERT_EQ(&selections->Of<GemmOp>(shape(m), machine), &Select<GemmOp>(shape(m), machine));
  const int64_t before = selections->selected();
  for (int i = 0; i < 3; ++i) selections->Of<GemmOp>(shape(199), machine);
  EXPECT_EQ(selections->selected(), before);
  const Kernel<GemmOp>& large = Select<GemmOp>(shape(199), machine);
  EXPECT_EQ(&selections->PeerOf(large, shape(2), machine),
            &SelectPeer<GemmOp>(large, shape(2), machine));
  EXPECT_NE(&selections->PeerOf(large, shape(2), machine), &large);
  selections->Clear();
  EXPECT_EQ(selections->selected(), 0);
}

}  // namespace
}  // namespace latte::selection_test

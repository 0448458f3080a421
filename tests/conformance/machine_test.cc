#include "src/kernels/machine.h"

#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

#include "src/base/limits/device_error.h"
#include "src/kernels/cpu/targets.h"
#include "src/kernels/cuda/isa.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/registry.h"

namespace latte::machine_test {
namespace {

// Sets or clears an environment variable until the end of the scope.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~ScopedEnv() { old_.empty() ? unsetenv(name_) : setenv(name_, old_.c_str(), 1); }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;

 private:
  const char* name_;
  std::string old_;
};

constexpr GemmOp::Shape kShape = {1, 1, 64, 64, DType::kF32, DType::kBF16};

TEST(Machine, IsaIsLoweredByTheEnvironment) {
  const ScopedEnv kernel("LATTE_KERNEL", nullptr);
  const ScopedEnv none("LATTE_ISA", nullptr);
  const Result<Machine> best = Machine::Detect();
  ASSERT_TRUE(best);
  for (const Isa isa : AllIsas()) {
    const ScopedEnv wanted("LATTE_ISA", std::string(Name(isa)).c_str());
    const Result<Machine> machine = Machine::Detect();
    ASSERT_EQ(machine.has_value(), best->Has(isa));
    if (!machine) {
      EXPECT_EQ(machine.error().code, Code::kInvalidArgument);
      EXPECT_NE(machine.error().message.find("this processor has"), std::string::npos);
      continue;
    }
    EXPECT_EQ(machine->isa, isa);
    // AVX512_BF16 has no kernels for this op; the AVX-512 kernels are used.
    EXPECT_EQ(Select<GemmOp>(kShape, *machine).isa,
              isa.Includes(x86::kAvx512) ? x86::kAvx512 : isa);
  }
}

TEST(Machine, HasInstructionSetsOfItsFamilyUpToItsLevel) {
  const Machine zen4{.isa = x86::kAvx512Bf16};
  EXPECT_TRUE(zen4.Has(Isa::kRef));
  EXPECT_TRUE(zen4.Has(x86::kAvx2));
  EXPECT_TRUE(zen4.Has(x86::kAvx512Bf16));
  EXPECT_FALSE(zen4.Has(x86::kAmx));
  EXPECT_FALSE(zen4.Has({IsaFamily::kCuda, 0}));
  EXPECT_FALSE(Machine{.isa = Isa::kRef}.Has(x86::kAvx2));
  // A GPU reads no host memory, so it cannot run the reference either.
  const Machine hopper{.isa = {IsaFamily::kCuda, 90}};
  EXPECT_TRUE(hopper.Has({IsaFamily::kCuda, 80}));
  EXPECT_FALSE(hopper.Has({IsaFamily::kCuda, 100}));
  EXPECT_FALSE(hopper.Has(x86::kAvx2));
  EXPECT_FALSE(hopper.Has(Isa::kRef));
}

// Kernels for sm_90a run on GPUs of level 90 and on no later ones.
TEST(Machine, InstructionsOfOneLevelAreInNoOther) {
  const auto has = [](int level, Isa wanted) {
    const Machine gpu{.isa = {IsaFamily::kCuda, level}};
    return gpu.Has(wanted);
  };
  EXPECT_TRUE(has(90, cuda::kSm90a));
  EXPECT_FALSE(has(89, cuda::kSm90a));
  EXPECT_FALSE(has(100, cuda::kSm90a));
  EXPECT_TRUE(has(100, cuda::kAnyGpu));
  EXPECT_EQ(Name(Isa{IsaFamily::kCuda, 90}), "sm_90");
  EXPECT_EQ(Name(cuda::kSm90a), "sm_90a");
}

// A GPU has kernels for some shapes only. Others are an error that names op and shape.
TEST(Machine, AShapeWithoutAKernelIsRefusedByName) {
  const Machine gpu{.isa = {IsaFamily::kCuda, 90}};
  EXPECT_EQ(Select<GemmOp>(kShape, gpu).name, "any.gemm");
  try {
    Select<GemmOp>({1, 1, 512, 2048, DType::kBF16, DType::kI32}, gpu);
    FAIL() << "expected an error";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), Code::kUnsupported);
    EXPECT_STREQ(error.what(),
                 "no kernel for sm_90 computes gemm of bf16 × i32, N = 512, K = 2048; run without "
                 "--device cuda");
  }
}

// At half rate, sub-16-bit weights and small H over e4m3 are converted to f32 instead of bf16.
TEST(Machine, SlowPairsLeaveBF16WeightsAndHeadsToF32) {
  Machine machine;
  machine.isa = x86::kAvx512Bf16;
  const auto linear = [&](DType w) {
    return Select<GemmOp>({1, 1, 64, 64, DType::kBF16, w}, machine).isa;
  };
  EXPECT_EQ(linear(DType::kBF16), x86::kAvx512Bf16);
  machine.uarch = Uarch::kIntelBf16;
  EXPECT_EQ(linear(DType::kBF16), x86::kAvx512);
  EXPECT_EQ(linear(DType::kF8E4M3), x86::kAvx512Bf16);
  MlaDecodeOp::Shape decode = {};
  decode.h = 2;
  decode.c = 512;
  decode.r = 64;
  decode.page_tokens = 64;
  decode.cache = DType::kBF16;
  EXPECT_EQ(Select<MlaDecodeOp>(decode, machine).isa, x86::kAvx512);
  decode.cache = DType::kU8;
  decode.kind = CacheFormat::kF8;
  EXPECT_EQ(Select<MlaDecodeOp>(decode, machine).isa, x86::kAvx512Bf16);
  decode.h = 16;
  EXPECT_EQ(Select<MlaDecodeOp>(decode, machine).isa, x86::kAvx512);
  machine.forced_kernels = {"avx512_bf16.gemm"};
  EXPECT_EQ(linear(DType::kBF16), x86::kAvx512Bf16);
}

TEST(Machine, UnknownIsaNamesTheChoices) {
  const ScopedEnv isa("LATTE_ISA", "sse9");
  const Result<Machine> machine = Machine::Detect();
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, Code::kInvalidArgument);
  std::string choices = "ref";
  for (const Isa each : AllIsas().subspan(1, AllIsas().size() - 2))
    choices += ", " + std::string(Name(each));
  choices += " or " + std::string(Name(AllIsas().back()));
  EXPECT_EQ(machine.error().message, "LATTE_ISA: expected " + choices + ", found 'sse9'");
}

TEST(Machine, NamedKernelsArePreferredAndOthersStay) {
  const ScopedEnv isa("LATTE_ISA", nullptr);
  const ScopedEnv kernel("LATTE_KERNEL", "ref.gemm,ref.mha");
  const Result<Machine> machine = Machine::Detect();
  ASSERT_TRUE(machine);
  EXPECT_EQ(Select<GemmOp>(kShape, *machine).name, "ref.gemm");
  const GemmTOp::Shape other = {1, 1, 64, 64, DType::kF32, DType::kBF16};
  EXPECT_EQ(Select<GemmTOp>(other, *machine).name,
            Select<GemmTOp>(other, Machine{.isa = machine->isa, .uarch = machine->uarch}).name);
}

TEST(Machine, FormerNamesOfKernelsAreTaken) {
  const ScopedEnv isa("LATTE_ISA", "avx2");
  const ScopedEnv kernel("LATTE_KERNEL", "ref.linear,ref.linear_t,ref.mha");
  const Result<Machine> machine = Machine::Detect();
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->forced_kernels,
            (std::vector<std::string>{"ref.gemm", "ref.gemm_t", "ref.mha"}));
}

TEST(Machine, ForcedKernelsThatTheMachineLacksAreIgnored) {
  const ScopedEnv isa("LATTE_ISA", "ref");
  const ScopedEnv kernel("LATTE_KERNEL", "avx512.gemm");
  const Result<Machine> machine = Machine::Detect();
  ASSERT_TRUE(machine);
  EXPECT_EQ(Select<GemmOp>(kShape, *machine).name, "ref.gemm");
}

TEST(Machine, UnknownKernelIsNamed) {
  const ScopedEnv kernel("LATTE_KERNEL", "ref.gemm,avx9.gemm");
  const Result<Machine> machine = Machine::Detect();
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, Code::kInvalidArgument);
  EXPECT_NE(machine.error().message.find("'avx9.gemm'"), std::string::npos);
}

TEST(Registry, KernelsOfAnOpStartWithTheReferenceAndRise) {
  const std::vector<KernelInfo> kernels = AllKernels();
  ASSERT_FALSE(kernels.empty());
  for (size_t i = 0; i < kernels.size(); ++i) {
    const bool first = i == 0 || kernels[i].op != kernels[i - 1].op;
    EXPECT_EQ(first, kernels[i].isa == Isa::kRef) << kernels[i].name;
    if (!first) {
      EXPECT_TRUE(kernels[i].isa.Includes(kernels[i - 1].isa) || kernels[i - 1].isa == Isa::kRef ||
                  kernels[i].isa.family == IsaFamily::kCuda)
          << kernels[i].name;
    }
    // Kernels for every GPU are named by what they take.
    if (kernels[i].isa == cuda::kAnyGpu) {
      EXPECT_EQ(kernels[i].name, "any." + std::string(kernels[i].op));
      continue;
    }
    const std::string group = std::string(Name(kernels[i].isa)) + "." + std::string(kernels[i].op);
    EXPECT_TRUE(kernels[i].name.starts_with(group)) << kernels[i].name;
    // A name that also means its group would not force one kernel.
    const auto in_group = [&](const KernelInfo& k) {
      return k.op == kernels[i].op && k.isa == kernels[i].isa;
    };
    EXPECT_TRUE(kernels[i].name != group || std::ranges::count_if(kernels, in_group) == 1) << group;
  }
}

}  // namespace
}  // namespace latte::machine_test

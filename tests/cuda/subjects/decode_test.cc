// The decode kernels under the emulator against fp64: 9 shapes × 5 kernels. LATTE_DECODE_ROUNDS=n
// draws n orders and landings for each; the results must be the same to the bit.
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cuda/emulator/emulator.h"
#include "tests/cuda/subjects/combine.cuh"
#include "tests/cuda/subjects/decode_problem.h"
#include "tests/cuda/subjects/mla_decode_sm80.cuh"
#include "tests/cuda/subjects/mla_decode_sm90.cuh"

namespace latte::subjects::decode_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Kernel {
  std::string name;
  int rows, threads, shared_bytes;  // rows of a block
  int capability;                   // the least that has the shared memory
  void (*run)(const cuda::MlaDecodeSm90Params&);
};

template <class Tile>
void RunSm80(const cuda::MlaDecodeSm90Params& p) {
  cuda::MlaDecodeSm80<Tile>(p.decode);
}

template <class Tile>
Kernel MakeSm80(const std::string& name, int capability) {
  return {name, Tile::kRows, Tile::kThreads, Tile::kSharedBytes, capability, &RunSm80<Tile>};
}

std::vector<Kernel> Kernels() {
  return {MakeSm80<cuda::Sm80Tile<64, 64>>("sm80_64x64", 90),
          MakeSm80<cuda::Sm80Tile<64, 32>>("sm80_64x32", 80),
          MakeSm80<cuda::Sm80Tile<16, 64>>("sm80_16x64", 90),
          MakeSm80<cuda::Sm80Tile<16, 32>>("sm80_16x32", 89),
          {"sm90", cuda::Sm90::kRows, cuda::Sm90::kThreads, cuda::Sm90::kSharedBytes, 90,
           &cuda::MlaDecodeSm90}};
}

struct Outcome {
  std::vector<float> o, lse;
  std::vector<std::string> errors;
  emulator::Counters counters;
};

template <class T>
void Lend(emulator::GlobalMemory& memory, const std::vector<T>& v) {
  memory.Add(v.data(), static_cast<int64_t>(v.size() * sizeof(T)), emulator::Content::kWritten,
             false);
}

void LendPoisoned(emulator::GlobalMemory& memory, const std::vector<float>& v) {
  memory.Add(v.data(), static_cast<int64_t>(v.size() * sizeof(float)),
             emulator::Content::kPoisoned);
}

emulator::GlobalMemory LendInputs(const DecodeProblem& problem) {
  emulator::GlobalMemory memory;
  Lend(memory, problem.q_latent);
  Lend(memory, problem.q_rope);
  Lend(memory, problem.pages);
  Lend(memory, problem.page_table);
  Lend(memory, problem.sequences);
  return memory;
}

cuda::TensorMap MapPages(const DecodeProblem& problem) {
  const int page = problem.shape.page_tokens;
  const emulator::Tensor tensor{problem.pages.data(),
                                2,
                                {kWidth, page, problem.PageCount()},
                                {2 * kWidth, int64_t{2} * kWidth * page},
                                {64, problem.BoxKeys(), 1}};
  cuda::TensorMap map;
  emulator::EncodeTensorMap(tensor, &map);
  return map;
}

// Merges the splits of `from` into its result.
void Combine(const DecodeProblem& problem, emulator::GlobalMemory& memory,
             const emulator::Options& options, Outcome& from) {
  const size_t rows = static_cast<size_t>(problem.Rows());
  std::vector<float> o(rows * kLatent, kNan), lse(rows, kNan);
  LendPoisoned(memory, o);
  LendPoisoned(memory, lse);
  const cuda::CombineParams p{from.o.data(), from.lse.data(), o.data(),
                              lse.data(),    int64_t(rows),   problem.shape.splits};
  const emulator::Report report =
      emulator::Launch({"combine", {(problem.Rows() + 7) / 8}, cuda::kCombineThreads, 0}, memory,
                       options, [&] { cuda::Combine(p); });
  from.errors.insert(from.errors.end(), report.errors.begin(), report.errors.end());
  from.o = std::move(o);
  from.lse = std::move(lse);
}

Outcome RunKernel(const Kernel& kernel, const DecodeProblem& problem,
                  const emulator::Options& options) {
  const DecodeCase& c = problem.shape;
  const size_t rows = static_cast<size_t>(problem.Rows() * c.splits);
  Outcome out{std::vector<float>(rows * kLatent, kNan), std::vector<float>(rows, kNan), {}, {}};
  emulator::GlobalMemory memory = LendInputs(problem);
  LendPoisoned(memory, out.o);
  LendPoisoned(memory, out.lse);
  cuda::MlaDecodeSm90Params p{MapPages(problem), problem.Params(), problem.BoxKeys()};
  p.decode.o = out.o.data();
  p.decode.lse = out.lse.data();
  const int row_blocks = (problem.LongestQuery() * c.heads + kernel.rows - 1) / kernel.rows;
  const emulator::Report report =
      emulator::Launch({kernel.name,
                        {c.splits, row_blocks, static_cast<int>(c.sequences.size())},
                        kernel.threads,
                        kernel.shared_bytes},
                       memory, options, [&] { kernel.run(p); });
  out.errors = report.errors;
  out.counters = report.counters;
  if (c.splits > 1) Combine(problem, memory, options, out);
  return out;
}

bool SameBytes(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

emulator::Options OptionsOf(const Kernel& kernel, size_t number, int round) {
  constexpr emulator::Landing kLandings[] = {emulator::Landing::kLate, emulator::Landing::kEarly,
                                             emulator::Landing::kRandom};
  emulator::Options options;
  options.seed = number + 1 + 100 * static_cast<uint64_t>(round);
  options.landing = kLandings[(number + static_cast<size_t>(round)) % 3];
  options.capability = kernel.capability;
  return options;
}

class Decode : public testing::TestWithParam<std::tuple<size_t, size_t>> {};

TEST_P(Decode, AgreesWithFp64) {
  const auto [kernel_number, case_number] = GetParam();
  const Kernel kernel = Kernels()[kernel_number];
  const DecodeProblem problem(DecodeCases()[case_number]);
  const Outcome out = RunKernel(kernel, problem, OptionsOf(kernel, case_number, 0));
  EXPECT_EQ(Joined(out.errors), "");
  const DecodeDistance d = Compare(problem, out.o, out.lse);
  EXPECT_LE(d.o, 1) << "o is off by " << d.o_absolute;
  EXPECT_LE(d.lse, 1) << "lse is off by " << d.lse_absolute;
  EXPECT_LE(out.counters.bank_conflicts * 100, out.counters.shared_cycles);
  const char* rounds = std::getenv("LATTE_DECODE_ROUNDS");
  for (int round = 1; round < (rounds != nullptr ? std::atoi(rounds) : 1); ++round) {
    const Outcome again = RunKernel(kernel, problem, OptionsOf(kernel, case_number, round));
    EXPECT_EQ(Joined(again.errors), "");
    EXPECT_TRUE(SameBytes(again.o, out.o) && SameBytes(again.lse, out.lse)) << "round " << round;
  }
}

std::string NameOf(const testing::TestParamInfo<std::tuple<size_t, size_t>>& info) {
  return Kernels()[std::get<0>(info.param)].name + "_" +
         DecodeCases()[std::get<1>(info.param)].name;
}

INSTANTIATE_TEST_SUITE_P(Subjects, Decode,
                         testing::Combine(testing::Range(size_t{0}, Kernels().size()),
                                          testing::Range(size_t{0}, DecodeCases().size())),
                         NameOf);

}  // namespace
}  // namespace latte::subjects::decode_test

#include "src/jobs/bench/bench_timer.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <string>

#include "src/base/check.h"
#include "src/base/json_out.h"
#include "src/base/math.h"
#include "src/kernels/cpu/peak/peak.h"
#include "src/kernels/cpu/targets.h"

namespace latte {
namespace {

constexpr int64_t kDramBytes = int64_t{512} << 20;

struct Instructions {
  Isa isa;
  DType arithmetic;
};

// The instructions that an arithmetic ceiling uses.
Instructions InstructionsOf(Ceiling ceiling, const Machine& machine) {
  switch (ceiling) {
    case Ceiling::kF32:
      return {machine.isa, DType::kF32};
    case Ceiling::kBF16:
      return {x86::kAvx512Bf16, DType::kBF16};
    case Ceiling::kInt8:
      return {x86::kAvx512Vnni, DType::kI8};
    case Ceiling::kAmxBF16:
      return {x86::kAmx, DType::kBF16};
    default:
      return {x86::kAmx, DType::kI8};
  }
}

double MeasurePeak(Instructions i, const Exec& exec) {
  constexpr int64_t kRounds = 1 << 18;  // 2 ms at 4 GHz
  if (cpu::RunPeak(*exec.machine, i.isa, i.arithmetic, 1) == 0) return 0.0;
  std::atomic<int64_t> flops = 0;
  const double seconds = SecondsOf([&] {
    exec.threads->ParallelFor(exec.threads->threads(), [&](int64_t) {
      flops += cpu::RunPeak(*exec.machine, i.isa, i.arithmetic, kRounds);
    });
  });
  return static_cast<double>(flops) / seconds * 1e-9;
}

// A core reads several sequential streams at once, each prefetched.
constexpr int64_t kStreams = 4;
constexpr int64_t kAheadWords = 256;

// The sum of words [begin, end).
uint64_t ReadWords(const uint64_t* words, int64_t begin, int64_t end) {
  const int64_t run = (end - begin) / kStreams / 8 * 8;
  uint64_t sums[8] = {};
  for (int64_t i = begin; i < begin + run; i += 8)
    for (int64_t s = 0; s < kStreams; ++s) {
      const uint64_t* from = words + i + s * run;
      __builtin_prefetch(from + kAheadWords);
      for (int64_t j = 0; j < 8; ++j) sums[j] += from[j];
    }
  return std::accumulate(std::begin(sums), std::end(sums), uint64_t{0});
}

// Every thread reads its part once.
double MeasureDram(const std::vector<char>& memory, const Exec& exec) {
  const auto words = static_cast<int64_t>(memory.size() / sizeof(uint64_t));
  const int64_t threads = exec.threads->threads();
  const int64_t part = CeilDiv(words, threads * 4);
  std::atomic<uint64_t> sum = 0;
  const double seconds = SecondsOf([&] {
    exec.threads->ParallelFor(threads * 4, [&](int64_t task) {
      sum += ReadWords(reinterpret_cast<const uint64_t*>(memory.data()), task * part,
                       std::min(words, (task + 1) * part));
    });
  });
  return static_cast<double>(memory.size()) / seconds * 1e-9;
}

}  // namespace

double Median(std::vector<double> values) {
  LATTE_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string_view Name(Ceiling ceiling) {
  switch (ceiling) {
    case Ceiling::kF32:
      return "peak_f32_gflops";
    case Ceiling::kBF16:
      return "peak_bf16_gflops";
    case Ceiling::kInt8:
      return "peak_int8_gops";
    case Ceiling::kAmxBF16:
      return "peak_amx_bf16_gflops";
    case Ceiling::kAmxInt8:
      return "peak_amx_int8_gops";
    case Ceiling::kDram:
      return "dram_gbps";
  }
  return "?";
}

Ceiling CeilingOf(Isa isa, DType arithmetic) {
  if (arithmetic == DType::kI8 && isa.Includes(x86::kAvx512Vnni))
    return isa == x86::kAmx ? Ceiling::kAmxInt8 : Ceiling::kInt8;
  if (arithmetic == DType::kBF16 && isa.Includes(x86::kAvx512Bf16))
    return isa == x86::kAmx ? Ceiling::kAmxBF16 : Ceiling::kBF16;
  return Ceiling::kF32;
}

void Ceilings::Sample(const Exec& exec, bool dram) {
  for (size_t i = 0; i < kCeilings; ++i) {
    const auto ceiling = static_cast<Ceiling>(i);
    if (ceiling != Ceiling::kDram)
      samples_[i].push_back(MeasurePeak(InstructionsOf(ceiling, *exec.machine), exec));
  }
  if (!dram) return;
  if (memory_.empty()) memory_.assign(kDramBytes, 1);
  samples_[static_cast<size_t>(Ceiling::kDram)].push_back(MeasureDram(memory_, exec));
}

double Ceilings::Last(Ceiling ceiling) const {
  const std::vector<double>& samples = samples_[static_cast<size_t>(ceiling)];
  return samples.empty() ? 0.0 : samples.back();
}

double Ceilings::Median(Ceiling ceiling) const {
  const std::vector<double>& samples = samples_[static_cast<size_t>(ceiling)];
  return samples.empty() ? 0.0 : latte::Median(samples);
}

void Ceilings::AddTo(JsonOut& record) const {
  for (size_t i = 0; i < kCeilings; ++i) {
    const auto ceiling = static_cast<Ceiling>(i);
    if (!samples_[i].empty()) record[std::string(Name(ceiling))] = OrNull(Median(ceiling));
  }
}

OpWork TotalWork(const OpTimes& times) {
  OpWork out;
  for (const auto& [op, use] : times) {
    out.flops += use.work.flops;
    out.bytes += use.work.bytes;
  }
  return out;
}

JsonOut OrNull(double rate) { return rate > 0 ? JsonOut(rate) : JsonOut(nullptr); }
JsonOut Fraction(double rate, double ceiling) { return OrNull(ceiling > 0 ? rate / ceiling : 0); }

}  // namespace latte

// Writes a hash of the outputs of every kernel call to the file that LATTE_RECORD_OUTPUTS names.
// tests/record/compare_records.py compares the files of two builds.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/check.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/params/indexer.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/params/moe.h"
#include "src/kernels/params/sampling.h"
#include "src/kernels/registry.h"
#include "src/tensor/tensor.h"

namespace latte {

// FNV-1a, 64 bits. Source: http://www.isthe.com/chongo/tech/comp/fnv/.
class OutputHash {
 public:
  // Hashes the elements within the shape, without the padding between rows.
  void Add(const TensorView& t) {
    if (!t.empty()) AddDimension(t, t.data, 0);
  }
  template <class T>
  void Add(std::span<T> values) {
    AddBytes(reinterpret_cast<const std::byte*>(values.data()), values.size_bytes());
  }
  uint64_t value() const { return value_; }

 private:
  void AddBytes(const std::byte* bytes, size_t size) {
    for (size_t i = 0; i < size; ++i)
      value_ = (value_ ^ static_cast<uint64_t>(bytes[i])) * 0x100000001b3;
  }
  void AddDimension(const TensorView& t, const std::byte* at, int dim) {
    const auto d = static_cast<size_t>(dim);
    if (dim == t.rank) return AddBytes(at, static_cast<size_t>(SizeOf(t.dtype)));
    for (int64_t i = 0; i < t.shape[d]; ++i)
      AddDimension(t, at + i * t.stride[d] * SizeOf(t.dtype), dim + 1);
  }

  uint64_t value_ = 0xcbf29ce484222325;
};

// Adds all outputs of an op. An op without an overload does not compile.
inline void AddOutputs(const GemmOp::Params& p, OutputHash& h) {
  for (const GemmProblem& problem : p.problems) h.Add(problem.y);
}
inline void AddOutputs(const GemmTOp::Params& p, OutputHash& h) { h.Add(p.y); }
inline void AddOutputs(const QuantizeRowsOp::Params& p, OutputHash& h) {
  h.Add(p.y), h.Add(p.scale);
}
inline void AddOutputs(const RmsNormOp::Params& p, OutputHash& h) { h.Add(p.y); }
inline void AddOutputs(const LayerNormOp::Params& p, OutputHash& h) { h.Add(p.y); }
inline void AddOutputs(const RopeAnglesOp::Params& p, OutputHash& h) { h.Add(p.cos), h.Add(p.sin); }
inline void AddOutputs(const RopeOp::Params& p, OutputHash& h) { h.Add(p.x); }
inline void AddOutputs(const QueryTemperatureOp::Params& p, OutputHash& h) { h.Add(p.x); }
inline void AddOutputs(const AddOp::Params& p, OutputHash& h) { h.Add(p.y); }
inline void AddOutputs(const AddRmsNormOp::Params& p, OutputHash& h) { h.Add(p.h), h.Add(p.y); }
inline void AddOutputs(const GatherOp::Params& p, OutputHash& h) { h.Add(p.y); }
inline void AddOutputs(const CastOp::Params& p, OutputHash& h) { h.Add(p.y); }
inline void AddOutputs(const FiniteRowsOp::Params& p, OutputHash& h) { h.Add(p.finite); }
inline void AddOutputs(const PackDraftsOp::Params& p, OutputHash& h) { h.Add(p.y); }
inline void AddOutputs(const CopyPageOp::Params& p, OutputHash& h) {
  for (const TensorView& layer : p.layers) h.Add(layer);
  h.Add(p.packed);
}
inline void AddOutputs(const AppendOp::Params& p, OutputHash& h) { h.Add(p.pages); }
inline void AddOutputs(const NormRopeAppendOp::Params& p, OutputHash& h) {
  h.Add(p.latent), h.Add(p.q_rope), h.Add(p.pages);
}
inline void AddOutputs(const GatherPagesOp::Params& p, OutputHash& h) { h.Add(p.y); }
inline void AddOutputs(const MlaDecodeOp::Params& p, OutputHash& h) {
  h.Add(p.o_latent), h.Add(p.lse);
  h.Add(p.splits.o), h.Add(p.splits.max), h.Add(p.splits.sum);
}
inline void AddOutputs(const MergeSplitsOp::Params& p, OutputHash& h) { h.Add(p.o), h.Add(p.lse); }
inline void AddOutputs(const IndexTopKOp::Params& p, OutputHash& h) {
  h.Add(p.positions), h.Add(p.scores);
}
inline void AddOutputs(const MhaOp::Params& p, OutputHash& h) { h.Add(p.o), h.Add(p.lse); }
inline void AddOutputs(const LseMergeOp::Params& p, OutputHash& h) { h.Add(p.o), h.Add(p.lse); }
inline void AddOutputs(const RouteOp::Params& p, OutputHash& h) {
  h.Add(p.experts), h.Add(p.weights);
}
inline void AddOutputs(const GroupByExpertOp::Params& p, OutputHash& h) {
  h.Add(p.first), h.Add(p.token), h.Add(p.row);
}
inline void AddOutputs(const ExpertGemmOp::Params& p, OutputHash& h) {
  for (size_t e = 0; e < p.experts.size(); ++e)
    if (!p.experts[e].w.empty()) h.Add(p.ProblemOf(e).y);
  for (const GemmProblem& problem : p.shared) h.Add(problem.y);
}
inline void AddOutputs(const CombineOp::Params& p, OutputHash& h) { h.Add(p.y); }
inline void AddOutputs(const LogitMaxOp::Params& p, OutputHash& h) {
  h.Add(std::span(p.has_nan, 1));
  if (!*p.has_nan) h.Add(p.block_max);
}
inline void AddOutputs(const TokenWeightSumOp::Params& p, OutputHash& h) {
  h.Add(std::span(p.sum, 1));
}
inline void AddOutputs(const TokenWeightsOp::Params& p, OutputHash& h) { h.Add(p.weights); }
inline void AddOutputs(const TokenHistogramOp::Params& p, OutputHash& h) { h.Add(p.buckets); }
inline void AddOutputs(const FindBucketOp::Params& p, OutputHash& h) { h.Add(p.found); }

// The number of calls that a test has made.
inline int& CallsOf(const ::testing::TestInfo* test) {
  static std::map<const ::testing::TestInfo*, int> calls;
  return calls[test];
}

// The file that LATTE_RECORD_OUTPUTS names; null if the variable is not set. It begins with the
// kernels that this machine supports: "#", op, kernel.
inline std::FILE* OutputRecord() {
  static std::FILE* const file = [] {
    const char* path = std::getenv("LATTE_RECORD_OUTPUTS");
    if (path == nullptr) return static_cast<std::FILE*>(nullptr);
    std::FILE* opened = std::fopen(path, "w");
    LATTE_CHECK(opened != nullptr, "LATTE_RECORD_OUTPUTS: the file cannot be written");
    // Whole lines: a death test forks, and its child would write what is left in the buffer again.
    std::setvbuf(opened, nullptr, _IOLBF, BUFSIZ);
    const Machine machine = *Machine::Detect();
    for (const KernelInfo& row : AllKernels())
      if (machine.Has(row.isa)) fmt::print(opened, "#\t{}\t{}\n", row.op, row.name);
    return opened;
  }();
  return file;
}

// Adds a line: test, op, kernel, "detected" or "other" for the machine passed to the call, number
// of the call within the test, hash of its outputs. Tests call kernels from one thread.
template <class Op>
void RecordOutputs(std::string_view row, std::string_view machine,
                   const typename Op::Params& params) {
  std::FILE* const file = OutputRecord();
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  if (file == nullptr || test == nullptr) return;
  OutputHash hash;
  AddOutputs(params, hash);
  fmt::print(file, "{}.{}\t{}\t{}\t{}\t{}\t{:016x}\n", test->test_suite_name(), test->name(),
             Op::kName, row, machine, CallsOf(test)++, hash.value());
}

}  // namespace latte

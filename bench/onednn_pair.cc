// Compares Latte's bf16 product with oneDNN's, interleaved in one process, so the ratio holds on a
// machine whose speed drifts. y [M, N] f32 = x [M, K] bf16 · W [N, K]ᵀ bf16.
//
//   onednn_pair M N K THREADS [ROW]     ROW: a kernel of `latte inspect --kernels`
//
// oneDNN is timed twice: with the weights in the layout of a checkpoint, as in Latte, and
// repacked in advance into oneDNN's preferred layout, the repacking not counted. It takes its
// threads from OMP_NUM_THREADS, which must say the same, and its instruction set from
// ONEDNN_MAX_CPU_ISA.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <oneapi/dnnl/dnnl.hpp>

#include "lab/bench/random_data.h"
#include "src/base/json_out.h"
#include "src/jobs/bench/bench_timer.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/registry.h"

namespace latte {
namespace {

constexpr int kRuns = 9;

// oneDNN's product over the same memory.
class OneDnn {
 public:
  OneDnn(const Tensor& x, const Tensor& w, const Tensor& y, bool repack)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using dnnl::memory;
    const int64_t m = x.view().shape[0];
    const int64_t k = x.view().shape[1];
    const int64_t n = w.view().shape[0];
    const memory::desc x_desc({m, k}, memory::data_type::bf16, memory::format_tag::ab);
    const memory::desc w_plain({k, n}, memory::data_type::bf16, memory::format_tag::ba);
    const memory::desc w_any({k, n}, memory::data_type::bf16, memory::format_tag::any);
    const memory::desc y_desc({m, n}, memory::data_type::f32, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc desc(
        dnnl::matmul::desc(x_desc, repack ? w_any : w_plain, y_desc), engine_);
    matmul_ = dnnl::matmul(desc);
    memory weights(w_plain, engine_, w.view().data);
    if (repack) {
      memory packed(desc.weights_desc(), engine_);
      dnnl::reorder(weights, packed).execute(stream_, weights, packed);
      stream_.wait();
      weights = packed;
    }
    args_ = {{DNNL_ARG_SRC, memory(x_desc, engine_, x.view().data)},
             {DNNL_ARG_WEIGHTS, weights},
             {DNNL_ARG_DST, memory(y_desc, engine_, y.view().data)}};
  }

  void Run() {
    matmul_.execute(stream_, args_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul matmul_;
  std::unordered_map<int, dnnl::memory> args_;
};

TensorView Batched(const Tensor& t) {
  return t.view().Reshape({1, t.view().shape[0], t.view().shape[1]});
}

const Kernel<GemmOp>* FindRow(const std::string& name, const GemmOp::Shape& shape,
                              const Machine& machine) {
  if (name.empty()) return &Select<GemmOp>(shape, machine);
  for (const Kernel<GemmOp>& row : Kernels<GemmOp>())
    if (row.name == name && machine.Has(row.isa) && row.supports(shape)) return &row;
  return nullptr;
}

int Main(int argc, char** argv) {
  if (argc != 5 && argc != 6) {
    std::fprintf(stderr, "usage: onednn_pair M N K THREADS [ROW]\n");
    return 2;
  }
  const int64_t m = std::atoll(argv[1]);
  const int64_t n = std::atoll(argv[2]);
  const int64_t k = std::atoll(argv[3]);
  const Result<Machine> machine = Machine::Detect();
  if (m < 1 || n < 1 || k < 1 || !machine) return 2;
  const Tensor x(DType::kBF16, {m, k});
  const Tensor w(DType::kBF16, {n, k});
  const Tensor y(DType::kF32, {m, n});
  FillRandom(x, 1.0f, 1);
  FillRandom(w, 1.0f, 2);
  GemmProblem part;
  part.x = Batched(x);
  part.w = Batched(w);
  part.y = Batched(y);
  const GemmOp::Params params{{&part, 1}};
  const Kernel<GemmOp>* row = FindRow(argc == 6 ? argv[5] : "", GemmOp::ShapeOf(params), *machine);
  if (row == nullptr) {
    std::fprintf(stderr, "ROW: expected a kernel of linear that runs here, found '%s'\n", argv[5]);
    return 2;
  }
  ThreadPool threads(std::atoi(argv[4]));
  const Exec exec{&threads, &*machine};
  OneDnn plain(x, w, y, false);
  OneDnn packed(x, w, y, true);
  row->run(params, exec);
  plain.Run();
  packed.Run();
  std::vector<double> ours, theirs, theirs_packed, ratio, ratio_packed;
  for (int run = 0; run < kRuns; ++run) {
    ours.push_back(SecondsOf([&] { row->run(params, exec); }));
    theirs.push_back(SecondsOf([&] { plain.Run(); }));
    theirs_packed.push_back(SecondsOf([&] { packed.Run(); }));
    ratio.push_back(ours.back() / theirs.back());
    ratio_packed.push_back(ours.back() / theirs_packed.back());
  }
  const double flops =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const JsonOut record{{"bench", "onednn_pair"},
                       {"kernel", row->name},
                       {"m", m},
                       {"n", n},
                       {"k", k},
                       {"threads", threads.threads()},
                       {"runs", kRuns},
                       {"gflops", flops * 1e-9 / Median(ours)},
                       {"onednn_gflops", flops * 1e-9 / Median(theirs)},
                       {"onednn_packed_gflops", flops * 1e-9 / Median(theirs_packed)},
                       {"time_ratio", Median(ratio)},
                       {"time_ratio_packed", Median(ratio_packed)}};
  std::printf("%s\n", Dump(record).c_str());
  return 0;
}

}  // namespace
}  // namespace latte

int main(int argc, char** argv) { return latte::Main(argc, argv); }

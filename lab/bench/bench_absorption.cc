#include "lab/bench/bench_absorption.h"

#include <array>
#include <vector>

#include <fmt/format.h>

#include "lab/bench/harness.h"
#include "lab/bench/random_data.h"
#include "lab/bench/random_mla_layer.h"
#include "src/base/json_out.h"
#include "src/kernels/params/gemm.h"

namespace latte {
namespace {

constexpr int kAbsorptionRuns = 5;
constexpr int64_t kD = 5120;
constexpr int64_t kCq = 1536;

// A product with random bf16 weights that are larger than the caches.
class RandomProduct {
 public:
  RandomProduct(int64_t rows, int64_t columns, int64_t batch)
      : w_(DType::kBF16, {1, rows, columns}),
        x_(DType::kBF16, {1, batch, columns}),
        y_(DType::kF32, {1, batch, rows}) {
    FillRandom(w_, 0.05f, 1);
    FillRandom(x_, 1.0f, 2);
  }
  double Run(const Exec& exec) {
    GemmProblem part;
    part.x = x_;
    part.w = w_;
    part.y = y_;
    return SecondsOf([&] { latte::Run<GemmOp>({{&part, 1}}, exec); });
  }
  int64_t bytes() const { return w_.bytes(); }

 private:
  Tensor w_, x_, y_;
};

struct Form {
  std::string_view name;
  int64_t weight_bytes, cache_bytes;
  std::vector<double> seconds = {};
};

}  // namespace

Result<JsonOut> BenchAbsorption(const AbsorptionOptions& o, const Machine& machine,
                                const JobProgress& progress) {
  LATTE_RETURN_IF_ERROR(FlagsInRange({{"--heads", o.heads, 1, 128},
                                      {"--context", o.context, 1, 1 << 17},
                                      {"--batch", o.batch, 1, 1024},
                                      {"--threads", o.threads, 1, 1024}}));
  MeasuredSteps steps(progress, 1 + kAbsorptionRuns);
  RandomMlaLayer::Options sample;
  sample.dims = DeepSeekDims(o.heads);
  sample.max_tokens = o.context + 1;
  sample.batch = o.batch;
  LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<RandomMlaLayer> latents,
                         RandomMlaLayer::Create(sample));
  sample.expanded_cache = true;
  LATTE_ASSIGN_OR_RETURN(const std::unique_ptr<RandomMlaLayer> expanded,
                         RandomMlaLayer::Create(sample));
  const MlaDims& dims = latents->dims();
  RandomProduct w_q(dims.h * dims.qk(), kCq, o.batch);
  RandomProduct w_qr(dims.h * dims.r, kCq, o.batch);
  RandomProduct w_o(kD, dims.h * dims.v, o.batch);
  RandomProduct w_uq_uk(dims.h * dims.c, kCq, o.batch);
  RandomProduct w_uv_o(kD, dims.h * dims.c, o.batch);
  const int64_t kv_b = dims.h * (dims.n + dims.v) * dims.c * SizeOf(DType::kBF16);
  const int64_t latent_cache = o.batch * o.context * dims.latent() * SizeOf(DType::kBF16);
  const int64_t expanded_cache = o.batch * o.context * dims.expanded() * SizeOf(DType::kBF16);
  const int64_t around = w_q.bytes() + w_o.bytes();
  std::array forms = {
      Form{"CD", around, expanded_cache}, Form{"CC", around + kv_b, latent_cache},
      Form{"A_CC", around + kv_b, latent_cache}, Form{"A_CC_ME", around + kv_b, latent_cache},
      Form{"AM_CC_ME", w_qr.bytes() + w_uq_uk.bytes() + w_uv_o.bytes(), latent_cache}};
  const BenchThreads exec(o.threads, machine);
  for (int run = -1; run < kAbsorptionRuns; ++run) {  // the first run warms up
    if (run < 0)
      steps.WarmUp("warming up");
    else
      steps.Begin("all forms");
    const double outer = w_q.Run(exec) + w_o.Run(exec);
    const double copy = latents->CopyRows(o.context, exec);
    const std::array seconds = {
        outer + expanded->Attend(MlaPath::kDecompressed, 1, o.context, exec),
        outer + latents->Attend(MlaPath::kLatent, 1, o.context, exec),
        outer + latents->Attend(MlaPath::kAbsorbed, 1, o.context, exec) + copy,
        outer + latents->Attend(MlaPath::kAbsorbed, 1, o.context, exec),
        w_qr.Run(exec) + w_uq_uk.Run(exec) + w_uv_o.Run(exec) +
            latents->AttendLatents(1, o.context, exec)};
    for (size_t i = 0; run >= 0 && i < forms.size(); ++i) forms[i].seconds.push_back(seconds[i]);
  }
  steps.End();
  JsonOut list = JsonOut::array();
  const double base = Median(forms[0].seconds);
  for (const Form& form : forms)
    list.push_back({{"form", form.name},
                    {"us", Median(form.seconds) * 1e6},
                    {"weight_bytes", form.weight_bytes},
                    {"cache_bytes", form.cache_bytes},
                    {"times_faster_than_cd", base / Median(form.seconds)}});
  return JsonOut{{"bench", "absorption"}, {"heads", o.heads},     {"context", o.context},
                 {"batch", o.batch},      {"threads", o.threads}, {"runs", kAbsorptionRuns},
                 {"forms", list}};
}

}  // namespace latte

// Checkpoints of published shapes with random weights, for benches and tests of models that are too
// large to ship. The same spec gives the same bytes on any machine and with any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"
#include "src/base/thread_pool.h"
#include "src/checkpoint/formats/common/weight_format.h"
#include "src/jobs/convert/checkpoint_writer.h"
#include "src/jobs/convert/staging_folder.h"
#include "src/jobs/job_progress.h"
#include "src/tensor/dtype.h"

namespace latte {

// The type of the weights: plain, or as `latte quantize` stores them.
struct SynthFormat {
  DType plain = DType::kBF16;             // of what is not quantised: kBF16 or kF32
  std::optional<QuantScheme> quant = {};  // not set: everything is plain

  bool f32() const { return plain == DType::kF32; }
};

struct SynthSpec {
  std::string shape;  // one of SynthShapes()
  // Not set: the numbers of the shape.
  std::optional<int64_t> layers = {};  // L
  std::optional<int64_t> dense = {};   // first layers without experts
  std::optional<int64_t> vocab = {};
  std::optional<int64_t> experts = {};  // E per layer
  std::optional<int64_t> mtp = {};      // multi-token-prediction layers
  SynthFormat format = {};
  uint64_t seed = 0;
  bool tokenizer = true;  // MakeSynthTokenizer's, if the vocabulary has room for it
};

// "v2-lite", "v2", …: the names in shapes.json. Published models and
//   v3-attn   attention of V3 with small other layers, for comparing engines
//   v3-lite   V3 with its multi-token-prediction layer and the widths of V2-Lite. The query latent,
//             which V2-Lite lacks, is as wide as in GLM-4.7-Flash, whose hidden size is the same
//   v3-micro  the attention widths of V3 in the smallest model that has all its parts, for tests of
//             kernels
std::vector<std::string> SynthShapes();

// "v2-lite" or "v3.2:layers=2,dense=1,vocab=16384,experts=8,mtp=1,dtype=int4,seed=1".
// Errors: kInvalidArgument naming the part that is wrong and what is known.
[[nodiscard]] Result<SynthSpec> ParseSynthSpec(std::string_view text);

// "bf16, f32, fp8, int8 or int4": what ParseSynthFormat accepts.
std::string SynthFormats();

// "bf16", "f32", or a name of --to: "int4". Errors: kInvalidArgument listing the accepted values.
[[nodiscard]] Result<SynthFormat> ParseSynthFormat(std::string_view text);

// The config.json of the spec.
// Errors: kInvalidArgument for an unknown shape, or for numbers that no such model can have.
[[nodiscard]] Result<JsonOut> SynthConfig(const SynthSpec& spec);

struct SynthReport {
  int64_t params = 0;  // as counted by `latte inspect`
  int64_t bytes = 0;   // size of all tensors
  double seconds = 0;
  std::vector<std::string> notes;  // for the user: leftovers next to the folder
};

// Writes config.json, a tokenizer and the weights of the spec to the folder `dir`: matrices N(0,
// 0.02) in shape, norms 1, biases 0. Multi-token-prediction layers have no copies of embedding and
// head. `progress`: in bytes, from any thread. Errors: of SynthConfig and CheckpointWriter.
[[nodiscard]] Result<SynthReport> WriteSynth(const SynthSpec& spec, const std::string& dir,
                                             ThreadPool& threads, const WriterOptions& options = {},
                                             const JobProgress& progress = {});

// A synthetic checkpoint in a folder of its own below $TMPDIR (or /tmp), deleted with this object.
// Weights that are mapped stay valid afterwards, so it need not outlive loading. Movable only.
class TemporarySynth {
 public:
  // `interrupted`: as in WriterOptions; `progress`: as in WriteSynth. Errors: of WriteSynth.
  [[nodiscard]] static Result<TemporarySynth> Make(const SynthSpec& spec, ThreadPool& threads,
                                                   const std::function<bool()>& interrupted = {},
                                                   const JobProgress& progress = {});

  std::string dir() const { return folder_.path() + "/model"; }

 private:
  explicit TemporarySynth(StagingFolder folder) : folder_(std::move(folder)) {}
  StagingFolder folder_;
};

}  // namespace latte

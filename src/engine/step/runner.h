// Runs one step of the model: builds the batch from the chunks of all sequences, then calls
// Model::Forward. Knows nothing of requests or time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "src/kernels/registry.h"
#include "src/layers/path_groups.h"
#include "src/models/model.h"

namespace latte {

struct RunnerOptions {
  DType arithmetic = DType::kBF16;
  int64_t prefill_workspace_tokens = 4096;  // prefill workspace, in cached tokens
  bool int8_activations = true;             // for int4 and int8 weights, unless arithmetic is f32
  // Tokens from this position on take the sparse path, whatever the path of their chunk. The model's
  // top-k where all keys before are chosen anyway.
  int64_t sparse_from = kNeverSparse;
  ExpertExchange expert_exchange = ExpertExchange::kAuto;
};

// Engine-thread only. Model, cache, workspace and exec must outlive it and be on one device.
class Runner {
 public:
  Runner(const Model& model, LatentCache& cache, Workspace& workspace, const Exec& exec,
         const RunnerOptions& options)
      : model_(model), cache_(cache), workspace_(workspace), exec_(exec), options_(options) {}

  // Hidden states [T, D] of all new tokens, in the order of `chunks`, valid until the next call.
  // Sequences of one path should be neighbours (src/layers/path_groups.h).
  // Requires: every token in [0, vocab).
  TensorView Forward(std::span<const SequenceChunk> chunks);

  // As Model::FinishStep.
  void FinishStep();

  // Hidden states z [T, D] of a drafting layer over `chunks`, whose tokens are those that the layer
  // takes (Model::Draft). `h` [T, D] is what run.input says and may be z. Valid until the next call.
  // Requires: the model drafts, and the cache has its layers. If drafts share keys, row i of a later
  // draft belongs to the sequence of row i of the first.
  TensorView Draft(std::span<const SequenceChunk> chunks, const TensorView& h, DraftRun run = {});

  // Writes a drafting layer's cache rows of `chunks`, as Draft does, and nothing else.
  void AppendDraftRows(std::span<const SequenceChunk> chunks, const TensorView& h,
                       DraftRun run = {});

  // Logits [M, vocab] of rows of Draft's output in host memory, valid until the next call of either
  // Logits.
  TensorView DraftLogits(const TensorView& z, int64_t layer = 0);

  // Copies of rows of Draft's output [M, D], valid until the next call.
  TensorView Pick(const TensorView& z, std::span<const int64_t> rows);

  // Seconds of every op of later calls are added to `times`; null: not measured.
  void Measure(OpTimes* times) { exec_.times = times; }

  // The kernels selected since Forward began its step.
  const Selections& selections() const { return *selections_; }

  // Logits [M, vocab] of rows of the last hidden states, in host memory, valid until the next call.
  TensorView Logits(const TensorView& h);

  // The same of chosen rows of Forward's output.
  TensorView LogitsOf(std::span<const int64_t> rows);

  // Rows of Forward's output in host memory, valid until the next call.
  TensorView ToHost(const TensorView& h);

  // `rows` [M, D] where the model can read them, valid until the next call and while `rows` is.
  TensorView FromHost(std::span<const float> rows);

 private:
  // Flat arrays for BatchContext. Tokens from sparse_from on take the sparse path.
  void BuildBatch(std::span<const SequenceChunk> chunks, int64_t sparse_from);
  void AddChunk(const SequenceChunk& chunk, int64_t sparse_from);
  void PlacePages();
  template <class T>
  std::span<const T> OnDevice(std::span<const T> values);
  void Gather(const TensorView& h, std::span<const int64_t> rows, const TensorView& out);
  StepContext BatchContext();  // of the arrays
  StepContext Context();       // without a batch
  bool DraftsShareKeys() const;
  void PlaceSharedKeys(DraftRun run, StepContext& step);
  // The logits that `compute`(step, logits) writes for `rows` rows.
  template <class F>
  TensorView HostLogits(int64_t rows, const F& compute);

  const Model& model_;
  LatentCache& cache_;
  Workspace& workspace_;
  Exec exec_;
  std::unique_ptr<Selections> selections_ = std::make_unique<Selections>();  // of this step
  RunnerOptions options_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<int64_t> slots_;
  std::vector<int32_t> pages_;  // of all chunks, if the device is not the host
  std::vector<SequenceChunk> chunks_;
  int64_t hidden_rows_ = 0;  // of the last Forward
  Tensor hidden_;
  Tensor draft_;
  Tensor picked_;
  Tensor shared_keys_;       // room for first_choice_
  TensorView first_choice_;  // [T, K] i32: keys of the last first drafts
  Tensor logits_;
  Tensor host_hidden_;  // copies, if the device is not the host
  Tensor placed_rows_;
  Tensor host_logits_;
};

}  // namespace latte

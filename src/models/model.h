// The interface between an architecture and the engine.
#pragma once

#include <functional>
#include <optional>

#include "src/checkpoint/config/model_config.h"
#include "src/layers/ranks.h"
#include "src/layers/step_context.h"

namespace latte {

// The states that a draft is made from.
enum class DraftInput {
  kDecoder,  // rows of Model::Forward's output
  kDraft,    // z of the draft before: drafts the token after it
};

// A run of a drafting layer. The draft before was made by the layer before it, cyclically.
struct DraftRun {
  int64_t layer = 0;
  DraftInput input = DraftInput::kDecoder;
};

// Optional parts of a checkpoint.
struct ModelOptions {
  const Device* device = nullptr;  // for the weights, outlives the model; null: the host
  RankShare share = {};            // of the weights, if several ranks compute each step
  // Of routed experts, if ranks of other groups share them too; without a value: `share`.
  std::optional<RankShare> expert_share = {};
  // Of heads, if ranks of the group divide the cache (ModelShare::heads); without a value: `share`.
  std::optional<RankShare> head_share = {};
  bool mtp = false;           // the multi-token-prediction layers, which draft tokens
  bool mtp_optional = false;  // load without them where the checkpoint lacks some of their tensors
  bool larger_than_memory = false;  // the weights: chosen experts are requested from disk together
  // Called after each layer where loading takes long: weights are repacked (AWQ, GPTQ), or copied
  // to a device.
  std::function<void(int64_t done, int64_t layers)> repacked = {};
};

// Immutable after loading; thread-safe as long as steps do not share a context.
class Model {
 public:
  virtual ~Model() = default;

  // Its mtp_layers are the layers that were loaded.
  virtual const ModelConfig& config() const = 0;

  // Where its weights lie. Steps run there: their workspace, cache and tensors lie there too.
  virtual const Device& device() const { return HostDevice(); }

  // Bytes of the weights that were loaded: this rank's share, each tensor once.
  virtual int64_t weight_bytes() const { return 0; }

  // Runs all layers over the step's tokens and appends to the cache. Shapes: h [T, D] f32, written:
  // hidden states before the final norm. A step without tokens does nothing, unless other groups of
  // ranks have some (step.group_tokens): then this rank computes its experts for them in every MoE
  // layer.
  virtual void Forward(StepContext& step, const TensorView& h) const = 0;

  // Final norm and LM head. Shapes: h [M, D] f32, any rows of Forward's output; logits [M, vocab]
  // f32, written.
  virtual void Logits(StepContext& step, const TensorView& h, const TensorView& logits) const = 0;

  // The drafting layers that were loaded. Their rows are the layers of the cache from `layers` on.
  virtual int64_t draft_layers() const { return 0; }
  bool drafts() const { return draft_layers() > 0; }
  // For the user: which of their tensors is missing, if ModelOptions::mtp_optional left them out.
  virtual std::string drafts_left_out() const { return ""; }

  // (step, run, h, z): runs a drafting layer. The step has the positions of h and, for layer i, the
  // tokens i + 1 after the tokens of h. Requires: drafts(). Shapes: h [T, D] f32, what run.input
  // says; z [T, D] f32, written, may be h: hidden states for DraftLogits. Without tokens: as
  // Forward.
  virtual void Draft(StepContext&, DraftRun, const TensorView&, const TensorView&) const {
    LATTE_CHECK(false, "this model does not draft");
  }

  // (step, run, h): as Draft, but only writes the layer's cache rows, which takes neither attention
  // nor feed-forward: they depend on h and the tokens alone.
  virtual void AppendDraftRows(StepContext&, DraftRun, const TensorView&) const {
    LATTE_CHECK(false, "this model does not draft");
  }

  // (step, layer, z, logits): logits of the token after the step's token. Shapes: z [M, D] f32, of
  // Draft by the layer; logits [M, vocab] f32, written.
  virtual void DraftLogits(StepContext&, int64_t, const TensorView&, const TensorView&) const {
    LATTE_CHECK(false, "this model does not draft");
  }
};

}  // namespace latte

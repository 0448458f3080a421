// The interface between an architecture and the engine.
#pragma once

#include <functional>

#include "src/checkpoint/config/model_config.h"
#include "src/layers/step_context.h"

namespace latte {

// The states that a draft is made from.
enum class DraftInput {
  kDecoder,  // rows of Model::Forward's output
  kDraft,    // z of the draft before: drafts the token after it
};

// Optional parts of a checkpoint.
struct ModelOptions {
  const Device* device = nullptr;  // for the weights, outlives the model; null: the host
  bool mtp = false;                // the multi-token-prediction layer, which drafts tokens
  // Called after each layer whose weights must be repacked while loading (AWQ, GPTQ).
  std::function<void(int64_t done, int64_t layers)> repacked = {};
};

// Immutable after loading; thread-safe as long as steps do not share a context.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelConfig& config() const = 0;

  // Where its weights lie. Steps run there: their workspace, cache and tensors lie there too.
  virtual const Device& device() const { return HostDevice(); }

  // Runs all layers over the step's tokens and appends to the cache. A step without tokens does
  // nothing. Shapes: h [T, D] f32, written: hidden states before the final norm.
  virtual void Forward(StepContext& step, const TensorView& h) const = 0;

  // Final norm and LM head. Shapes: h [M, D] f32, any rows of Forward's output; logits [M, vocab]
  // f32, written.
  virtual void Logits(StepContext& step, const TensorView& h, const TensorView& logits) const = 0;

  // Whether a drafting layer was loaded. It is layer `layers` of the cache.
  virtual bool drafts() const { return false; }

  // (step, input, h, z): runs the drafting layer. The step has the positions of h and the tokens after
  // the tokens of h. Requires: drafts(). Shapes: h [T, D] f32, what `input` says; z [T, D] f32,
  // written, may be h: hidden states for DraftLogits.
  virtual void Draft(StepContext&, DraftInput, const TensorView&, const TensorView&) const {
    LATTE_CHECK(false, "this model does not draft");
  }

  // (step, h): as Draft from the decoder's rows, but only writes the layer's cache rows, which takes
  // neither attention nor feed-forward: they depend on h and the tokens alone.
  virtual void AppendDraftRows(StepContext&, const TensorView&) const {
    LATTE_CHECK(false, "this model does not draft");
  }

  // (step, z, logits): logits of the token after the step's token. Shapes: z [M, D] f32; logits [M,
  // vocab] f32, written.
  virtual void DraftLogits(StepContext&, const TensorView&, const TensorView&) const {
    LATTE_CHECK(false, "this model does not draft");
  }
};

}  // namespace latte

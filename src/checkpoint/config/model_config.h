// Reads config.json of a Hugging Face folder into ModelConfig, which is validated once and
// immutable. The Hugging Face spelling of keys appears in model_config.cc only; all other code uses
// the papers' symbols. A model that is not an MLA decoder of a supported family is refused with its
// name and the reason.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/json.h"
#include "src/checkpoint/config/quant_config.h"

namespace latte {

class Tokenizer;

// Sizes of one MLA layer. DeepSeek-V2 (arXiv 2405.04434) §2.1.
struct MlaDims {
  int64_t d = 0;      // D: hidden size
  int64_t h = 0;      // H: attention heads
  int64_t cq = 0;     // Cq: rank of the query latent; 0: queries are projected directly
  int64_t c = 0;      // C: rank of the key-value latent
  int64_t n = 0;      // N: per-head width of queries and keys without position
  int64_t r = 0;      // R: per-head width of queries and keys that carry position
  int64_t v = 0;      // V: per-head width of values
  bool bias = false;  // bias on q_a, kv_a and o projections
  // Epsilon of the two latent norms. Published code uses 1e-6 whatever rms_norm_eps is.
  double lora_norm_eps = 1e-6;

  int64_t qk() const { return n + r; }                  // width of one query or key head
  int64_t latent() const { return c + r; }              // elements cached per token and layer
  int64_t expanded() const { return h * (n + r + v); }  // the same if K and V of heads are cached
};

// The lightning indexer of sparse attention: small heads that choose the tokens that a query
// attends to. DeepSeek-V3.2 report §2.1. heads == 0: no indexer.
struct IndexerDims {
  int64_t heads = 0;
  int64_t width = 0;  // width of one head
  int64_t topk = 0;   // number of tokens that a query attends to
  // Rotated pairs of its queries and keys, whatever the layout of the attention heads: (2j, 2j+1);
  // false: (j, j+R/2).
  bool interleaved = false;
};

enum class Router { kGreedy, kGroupLimitedGreedy, kNoauxTc };
enum class Scoring { kSoftmax, kSigmoid };

// Sizes and rules of the mixture-of-experts layers. experts == 0: every layer is dense.
struct MoeDims {
  int64_t experts = 0;      // E
  int64_t chosen = 0;       // K experts per token
  int64_t shared = 0;       // shared experts: one MLP of width shared·width
  int64_t width = 0;        // inner width of one expert
  int64_t groups = 1;       // the experts are split into this many groups of equal size
  int64_t groups_kept = 1;  // groups that a token may choose from
  Router router = Router::kGreedy;
  Scoring scoring = Scoring::kSoftmax;
  bool normalize = false;  // chosen weights are divided by their sum
  // Whether normalised weights are multiplied by `scale`; DeepSeek-V2 does not.
  bool scale_normalized = true;
  double scale = 1.0;          // routed_scaling_factor
  int64_t first_dense = 0;     // layers before this one are dense
  int64_t freq = 1;            // after that every freq-th layer is MoE
  bool bias_optional = false;  // a router bias that is absent counts as zero
  bool post_norm = false;      // an RMSNorm stands between the MoE output and the residual (A.X-K1)
};

// Rotary position embedding and its YaRN extension (arXiv 2309.00071).
struct RopeConfig {
  bool rotate = true;  // false: no position encoding (NoPE); the R dims still contribute to the
                       // scores
  bool interleaved = true;  // pairs (2j, 2j+1); false: (j, j+R/2)
  double theta = 10000.0;
  bool yarn = false;
  double factor = 1.0;
  int64_t original_max = 0;  // original_max_position_embeddings
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  double mscale = 1.0;
  double mscale_all_dim = 0.0;
  bool truncate = true;           // floor/ceil of the correction range
  double attention_factor = 0.0;  // > 0: replaces the factor of cos and sin
  // [R/2] LongRoPE (arXiv 2402.13753): the frequency of pair j is divided by number j. Empty: no
  // LongRoPE.
  std::vector<double> pair_factors;
  // > 0: a query at position p is multiplied by its temperature, 1 + query_beta·ln(1 +
  // ⌊p/original_max⌋). Llama 4 and Mistral 4 sharpen attention over long contexts that way.
  double query_beta = 0.0;
};

// Constants of MiniCPM (arXiv 2404.06395 §3), which multiply hidden states: h = embedding·E[token];
// h += residual·f(RMSNorm(h)) for attention and FFN; logits = W_head·(head·RMSNorm(h)).
struct StateScales {
  double embedding = 1.0;  // scale_emb
  double residual = 1.0;   // scale_depth/√L
  double head = 1.0;       // dim_model_base/D
};

struct ModelConfig {
  std::string architecture;  // "DeepseekV3ForCausalLM"
  std::string model_type;    // "deepseek_v3"
  int64_t layers = 0;        // L
  int64_t vocab = 0;
  int64_t dense_width = 0;   // inner width of the dense MLP
  int64_t max_position = 0;  // longest context that the model is made for
  double norm_eps = 1e-6;
  bool tied_embeddings = false;
  int64_t mtp_layers = 0;    // multi-token-prediction layers, stored after layer L-1 in the
                             // checkpoint
  bool wrapped = false;      // the text part of a multi-part model; the other parts are not read
  uint64_t text_hash = 0;    // of the file, if the config was read from one
  int64_t bos = -1;          // -1: none
  std::vector<int64_t> eos;  // of config.json and generation_config.json, otherwise the tokenizer's
  MlaDims mla;
  IndexerDims indexer;
  std::vector<bool> indexed_layers;  // [L] layers that have an indexer; empty: all, if the model
                                     // has one
  bool drafts_share_keys = false;    // later drafts attend to the keys that the first one chose
  MoeDims moe;
  std::vector<bool> moe_layers;  // [L] from mlp_layer_types; empty: by first_dense and freq
  RopeConfig rope;
  StateScales scales;
  QuantConfig quant;
  std::vector<std::string> assumed;  // sentences: what the file does not say and is taken instead

  // Layers L and above are multi-token-prediction layers.
  bool IsMoe(int64_t layer) const {
    if (moe.experts == 0) return false;
    if (layer >= layers) return true;
    if (!moe_layers.empty()) return moe_layers[static_cast<size_t>(layer)];
    return layer >= moe.first_dense && layer % moe.freq == 0;
  }
  bool IsIndexed(int64_t layer) const {
    if (indexer.heads == 0) return false;
    return layer >= layers || indexed_layers.empty() || indexed_layers[static_cast<size_t>(layer)];
  }
};

// Parses and validates a config document.
// Errors: kCorrupt naming the key, the value found and the expected value; kUnsupported naming the
// architecture and the reason.
[[nodiscard]] Result<ModelConfig> ParseModelConfig(const Json& config);

// Features of the model that Latte does not use, and what is assumed about it, as sentences for the
// user; usually none.
std::vector<std::string> UnusedFeatures(const ModelConfig& config);

// Reads config.json (and generation_config.json, if present) of `dir`, or `dir` itself if it names
// a .json file, or the metadata of `dir` if it names a .gguf file. If none names an end token, the
// tokenizer of `dir` does.
[[nodiscard]] Result<ModelConfig> LoadModelConfig(const std::string& dir);

// The same in two parts, for a caller that has the tokenizer.
[[nodiscard]] Result<ModelConfig> LoadModelConfigAlone(const std::string& dir);
void AddTokenizerEos(const Tokenizer& tokenizer, ModelConfig& config);

}  // namespace latte

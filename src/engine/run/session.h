// One sequence: its tokens, its pages, and the two ways it grows: by a prompt, in chunks, or by one
// generated token. It can be cut back, to go on in another way.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "latte/request.h"

#include "src/cache/page_pool.h"
#include "src/engine/attention_mode.h"
#include "src/engine/run/runner.h"
#include "src/layers/mla/rates.h"

namespace latte {

struct SessionOptions {
  AttentionMode attention = AttentionMode::kAuto;
  DType dtype = DType::kBF16;  // arithmetic
  // What is cached; nothing: numbers of `dtype`. Quantised kinds hold latents only.
  std::optional<CacheDType> cache_dtype;
  bool int8_activations = true;  // for int4 and int8 weights, unless dtype is f32
  int64_t chunk_tokens = 512;    // prompt tokens per step; 0: the whole prompt at once
  int64_t expand_tokens = 4096;  // prefill workspace: cached tokens expanded at once
  int64_t page_tokens = 64;      // power of two, 16 … 256
  int64_t max_tokens = 4096;     // longest sequence; room in the cache is reserved for it
  int threads = 0;               // 0: DefaultThreads()
  Determinism deterministic = Determinism::kOn;
  std::optional<MlaRates> rates;  // what kAuto prices paths with; empty: typical of the machine

  // Errors: kInvalidArgument naming the field, its value and the accepted range.
  [[nodiscard]] Status Validate() const;

  CacheDType cache() const { return cache_dtype.value_or(CacheDType::Plain(dtype)); }
};

// Engine-thread only. The model and the machine must outlive it.
class Session {
 public:
  // Errors: of SessionOptions::Validate; kExhausted when the cache does not fit.
  [[nodiscard]] static Result<std::unique_ptr<Session>> Create(const Model& model,
                                                               const Machine& machine,
                                                               const SessionOptions& options);

  // Receives logits [M, vocab] of the tokens at [first, first + M) of the sequence; stops the call
  // by an error.
  using LogitsSink = std::function<Status(int64_t first, const TensorView& logits)>;

  // Chooses the path of the next `new_tokens` tokens of a prompt, which may come by several calls
  // of Prompt. Without it, every call of Prompt is a prompt of its own.
  void Admit(int64_t new_tokens);

  // Appends a prompt. With `all_logits`, every chunk's logits go to it.
  // Errors: kInvalidArgument for an empty prompt, a token outside the vocabulary, or more than
  // max_tokens in all; kUnsupported when f16 arithmetic overflows, after which the session is of no
  // more use.
  [[nodiscard]] Status Prompt(std::span<const int32_t> tokens, const LogitsSink& all_logits = {});

  // Appends one generated token. Errors: as Prompt.
  [[nodiscard]] Status Append(int32_t token);

  // Forgets every token from `length` on and frees their pages.
  // Requires: 0 <= length <= length(). There are no logits until the next Prompt or Append.
  void Truncate(int64_t length);

  // Logits after the last token. Requires: a token since the start or the last Truncate.
  std::span<const float> LastLogits();

  int64_t length() const { return static_cast<int64_t>(tokens_.size()); }
  std::span<const int32_t> tokens() const { return tokens_; }

  // How many leading tokens a later prompt that begins with them may build on: all of them, or
  // under kStrict those with the cache rows that a prompt of them would write. Cut back to no more
  // than this, a strict session goes on with the bytes of a fresh one that is given everything as
  // one prompt. Generated tokens do not count then under kAuto: they were computed by the absorbed
  // path, which rounds elsewhere than the prompt's. Under the other modes both have one path.
  int64_t reusable_length() const {
    return options_.deterministic == Determinism::kStrict ? prompt_length_ : length();
  }
  const CacheSpec& cache_spec() const { return cache_.spec(); }
  int64_t workspace_bytes() const { return workspace_.capacity_bytes(); }
  const SessionOptions& options() const { return options_; }
  Isa isa() const { return isa_; }  // of the machine

 private:
  Session(const Model& model, const Machine& machine, const SessionOptions& options,
          LatentCache cache);
  [[nodiscard]] Status Extend(std::span<const int32_t> tokens, MlaPath path,
                              const LogitsSink& all_logits);
  [[nodiscard]] Status CheckRange(const TensorView& h) const;
  [[nodiscard]] Status CheckTokens(std::span<const int32_t> tokens) const;

  const Model& model_;
  Isa isa_;
  SessionOptions options_;
  ThreadPool threads_;
  LatentCache cache_;
  PagePool pool_;
  Workspace workspace_;
  Runner runner_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> pages_;
  int64_t prompt_length_ = 0;  // leading tokens computed by the one path of strict prompts
  MlaRates rates_;
  int64_t admitted_ = 0;  // tokens that are still to come by `admitted_path_`
  MlaPath admitted_path_ = MlaPath::kLatent;
  TensorView last_hidden_;  // [1, D], in the runner; no data: nothing to take logits of
};

}  // namespace latte

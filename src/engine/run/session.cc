#include "src/engine/run/session.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "src/base/math.h"
#include "src/engine/in_range.h"
#include "src/layers/mla/mla.h"
#include "src/layers/mla/path_cost.h"

namespace latte {
Status SessionOptions::Validate() const {
  constexpr int64_t kMany = int64_t{1} << 30;
  LATTE_RETURN_IF_ERROR(InRange("chunk", chunk_tokens, 0, kMany));
  LATTE_RETURN_IF_ERROR(InRange("prefill-workspace-tokens", expand_tokens, 1, kMany));
  LATTE_RETURN_IF_ERROR(InRange("page-tokens", page_tokens, 16, 256));
  LATTE_RETURN_IF_ERROR(InRange("max-tokens", max_tokens, 1, kMany));
  LATTE_RETURN_IF_ERROR(InRange("threads", threads, 0, 1024));
  LATTE_RETURN_IF_ERROR(CheckCacheDType(attention, cache()));
  if (!IsPow2(page_tokens))
    return InvalidArgument(
        fmt::format("page-tokens: expected a power of two, found {}", page_tokens));
  return {};
}

Session::Session(const Model& model, const Machine& machine, const SessionOptions& options,
                 LatentCache cache)
    : model_(model),
      isa_(machine.isa),
      options_(options),
      threads_(options.threads),
      cache_(std::move(cache)),
      pool_(cache_.pages()),
      runner_(model, cache_, workspace_, Exec{&threads_, &machine},
              RunnerOptions{options.dtype, options.expand_tokens, options.int8_activations}),
      rates_(options.rates.value_or(MlaRates::Typical(machine.isa))) {
  options_.threads = threads_.threads();
}

void Session::Admit(int64_t new_tokens) {
  const bool one_path =
      options_.attention != AttentionMode::kAuto || options_.deterministic == Determinism::kStrict;
  admitted_ = new_tokens;
  admitted_path_ = one_path || new_tokens == 0
                       ? PromptPath(options_.attention)
                       : ChoosePath(model_.config().mla, {new_tokens, length()}, rates_).path;
}

Result<std::unique_ptr<Session>> Session::Create(const Model& model, const Machine& machine,
                                                 const SessionOptions& options) {
  LATTE_RETURN_IF_ERROR(options.Validate());
  const int64_t pages = CeilDiv(options.max_tokens, options.page_tokens);
  LATTE_ASSIGN_OR_RETURN(LatentCache cache,
                         LatentCache::Create(CacheSpecFor(model.config(), options.attention,
                                                          options.cache(), options.page_tokens),
                                             pages));
  return std::unique_ptr<Session>(new Session(model, machine, options, std::move(cache)));
}

Status Session::CheckTokens(std::span<const int32_t> tokens) const {
  if (tokens.empty()) return InvalidArgument("the prompt is empty: expected at least one token");
  const int64_t total = length() + static_cast<int64_t>(tokens.size());
  if (total > options_.max_tokens)
    return InvalidArgument(fmt::format(
        "the sequence would have {} tokens, but there is room for {}", total, options_.max_tokens));
  for (const int32_t token : tokens)
    if (token < 0 || token >= model_.config().vocab)
      return InvalidArgument(
          fmt::format("token {} is outside the vocabulary [0, {})", token, model_.config().vocab));
  return {};
}

// An overflow of f16 becomes an infinity, which reaches the hidden state as such or as a NaN.
Status Session::CheckRange(const TensorView& h) const {
  if (options_.dtype != DType::kF16) return {};
  const float* values = h.Ptr<float>();
  const float* const end = values + h.elements();
  const float* bad = std::find_if(values, end, [](float x) { return !std::isfinite(x); });
  if (bad == end) return {};
  const int64_t row = (bad - values) / h.shape[1];
  return Unsupported(fmt::format(
      "f16 arithmetic: expected values up to 65504, the largest that f16 has, but those "
      "of token {} pass it; use --dtype bf16 or f32",
      length() - h.shape[0] + row));
}

Status Session::Prompt(std::span<const int32_t> tokens, const LogitsSink& all_logits) {
  LATTE_RETURN_IF_ERROR(CheckTokens(tokens));
  if (admitted_ < static_cast<int64_t>(tokens.size())) Admit(static_cast<int64_t>(tokens.size()));
  admitted_ -= static_cast<int64_t>(tokens.size());
  const size_t chunk =
      options_.chunk_tokens == 0 ? tokens.size() : static_cast<size_t>(options_.chunk_tokens);
  for (size_t begin = 0; begin < tokens.size(); begin += chunk)
    LATTE_RETURN_IF_ERROR(Extend(tokens.subspan(begin, std::min(chunk, tokens.size() - begin)),
                                 admitted_path_, all_logits));
  return {};
}

Status Session::Append(int32_t token) {
  const std::span<const int32_t> one(&token, 1);
  LATTE_RETURN_IF_ERROR(CheckTokens(one));
  admitted_ = 0;
  return Extend(one, GeneratedPath(options_.attention), {});
}

Status Session::Extend(std::span<const int32_t> tokens, MlaPath path,
                       const LogitsSink& all_logits) {
  const int64_t cached_len = length();
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  while (static_cast<int64_t>(pages_.size()) < CeilDiv(length(), options_.page_tokens)) {
    LATTE_ASSIGN_OR_RETURN(const int32_t page, pool_.Allocate());
    pages_.push_back(page);
  }
  const SequenceWork work{tokens, cached_len, path, pages_};
  const TensorView h = runner_.Forward({&work, 1});
  LATTE_RETURN_IF_ERROR(CheckRange(h));
  last_hidden_ = h.Slice(0, h.shape[0] - 1, h.shape[0]);
  if (prompt_length_ == cached_len && path == PromptPath(options_.attention))
    prompt_length_ = length();
  return all_logits ? all_logits(cached_len, runner_.Logits(h)) : Status();
}

void Session::Truncate(int64_t length) {
  LATTE_CHECK(length >= 0 && length <= this->length(), "{} of {} tokens", length, this->length());
  tokens_.resize(static_cast<size_t>(length));
  for (; static_cast<int64_t>(pages_.size()) > CeilDiv(length, options_.page_tokens);
       pages_.pop_back())
    pool_.Release(pages_.back());
  prompt_length_ = std::min(prompt_length_, length);
  admitted_ = 0;
  last_hidden_ = {};
}

std::span<const float> Session::LastLogits() {
  LATTE_CHECK(last_hidden_.data != nullptr, "no token yet");
  const TensorView logits = runner_.Logits(last_hidden_);
  return {logits.Ptr<float>(), static_cast<size_t>(logits.shape[1])};
}

}  // namespace latte

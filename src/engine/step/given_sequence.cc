#include "src/engine/step/given_sequence.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "src/engine/step/f16_overflow.h"

namespace latte {

Result<std::unique_ptr<GivenSequence>> GivenSequence::Create(const Model& model,
                                                             const Machine& machine,
                                                             const Settings& settings,
                                                             Followers* followers) {
  if (followers != nullptr)
    LATTE_RETURN_IF_ERROR(CatchLostRanks([&] { followers->Start(settings); }));
  LATTE_ASSIGN_OR_RETURN(LatentCache cache,
                         LatentCache::Create(settings.cache_spec, settings.pages, model.device()));
  return std::unique_ptr<GivenSequence>(
      new GivenSequence(model, machine, settings, std::move(cache)));
}

GivenSequence::GivenSequence(const Model& model, const Machine& machine, const Settings& settings,
                             LatentCache cache)
    : model_(model),
      settings_(settings),
      threads_(settings.options.threads),
      cache_(std::move(cache)),
      workspace_(model.device()),
      runner_(model, cache_, workspace_, Exec{&threads_, &machine},
              RunnerOptions{settings.dtype, settings.options.prefill_workspace_tokens,
                            settings.options.int8_activations, settings.sparse_from,
                            settings.expert_exchange}),
      pages_(static_cast<size_t>(settings.pages)) {
  std::iota(pages_.begin(), pages_.end(), 0);
}

Status GivenSequence::CheckTokens(std::span<const int32_t> tokens) const {
  if (tokens.empty()) return InvalidArgument("the prompt is empty: expected at least one token");
  const int64_t total = length_ + static_cast<int64_t>(tokens.size());
  const int64_t room = settings_.options.max_tokens - 1;
  if (total > room)
    return InvalidArgument(
        fmt::format("the sequence would have {} tokens, but there is room for {}", total, room));
  for (const int32_t token : tokens)
    if (token < 0 || token >= model_.config().vocab)
      return InvalidArgument(
          fmt::format("token {} is outside the vocabulary [0, {})", token, model_.config().vocab));
  return {};
}

Status GivenSequence::CheckRange(const TensorView& computed) {
  if (settings_.dtype != DType::kF16) return {};
  const TensorView h = runner_.ToHost(computed);
  const auto bad = FirstNotFinite({h.Ptr<float>(), static_cast<size_t>(h.elements())});
  if (!bad) return {};
  return F16Overflow(fmt::format("token {}", length_ + *bad / h.shape[1]));
}

Status GivenSequence::AppendPrompt(std::span<const int32_t> tokens, const LogitsSink& sink) {
  LATTE_RETURN_IF_ERROR(CheckTokens(tokens));
  const auto count = static_cast<int64_t>(tokens.size());
  return Append(tokens, settings_.PathOf(model_.config().mla, count, length_), sink);
}

Status GivenSequence::AppendGenerated(int32_t token, const LogitsSink& sink) {
  const std::span<const int32_t> one(&token, 1);
  LATTE_RETURN_IF_ERROR(CheckTokens(one));
  return Append(one, DecodePath(settings_.attention), sink);
}

Status GivenSequence::Append(std::span<const int32_t> tokens, MlaPath path,
                             const LogitsSink& sink) {
  const auto most = static_cast<size_t>(settings_.options.max_batch_tokens);
  Status computed;
  for (size_t begin = 0; begin < tokens.size() && computed; begin += most)
    LATTE_RETURN_IF_ERROR(CatchLostRanks([&] {
      computed = Compute(tokens.subspan(begin, std::min(most, tokens.size() - begin)), path, sink);
    }));
  return computed;
}

Status GivenSequence::Compute(std::span<const int32_t> chunk, MlaPath path,
                              const LogitsSink& sink) {
  const auto step = SequenceChunk::Of(chunk, length_, path, pages_);
  const TensorView h = runner_.Forward({&step, 1});
  LATTE_RETURN_IF_ERROR(CheckRange(h));
  const int64_t first = length_;
  length_ += static_cast<int64_t>(chunk.size());
  return sink(first, runner_.Logits(h));
}

}  // namespace latte

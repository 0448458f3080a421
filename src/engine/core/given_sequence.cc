#include "src/engine/core/given_sequence.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "src/base/limits/out_of_memory.h"
#include "src/base/math.h"
#include "src/engine/core/f16_overflow.h"
#include "src/engine/step/lost_ranks.h"
#include "src/engine/step/step_settings.h"

namespace latte {
namespace {

// The pages of a sequence that is alone: of each owner those from place 0 on.
std::vector<int32_t> PagesOfOne(const Settings& settings) {
  const PageOwners owners = settings.owners();
  std::vector<int32_t> out(
      static_cast<size_t>(std::min(owners.MostPages(settings.pages_of_rank()),
                                   CeilDiv(settings.options.max_tokens, owners.page_tokens))));
  for (int64_t i = 0; i < std::ssize(out); ++i) {
    const int64_t owner = owners.OwnerAt(i);
    out[static_cast<size_t>(i)] = owners.IdOf(owner, owners.PagesOf(owner, i));
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<GivenSequence>> GivenSequence::Create(const Model& model,
                                                             const Machine& machine,
                                                             const Settings& settings,
                                                             StepAnnouncer* followers) {
  if (followers != nullptr)
    LATTE_RETURN_IF_ERROR(CatchLostRanks([&] { followers->Start(settings); }));
  LATTE_ASSIGN_OR_RETURN(
      LatentCache cache,
      LatentCache::Create(settings.cache_spec, settings.pages_of_rank(), model.device()));
  return CatchExhaustion([&]() -> Result<std::unique_ptr<GivenSequence>> {
    std::unique_ptr<GivenSequence> out(
        new GivenSequence(model, machine, settings, std::move(cache), followers));
    if (!model.device().is_host())
      out->runner_.Prepare(out->step_, PathsOf(settings), settings.options.max_tokens);
    return out;
  });
}

GivenSequence::GivenSequence(const Model& model, const Machine& machine, const Settings& settings,
                             LatentCache cache, StepAnnouncer* followers)
    : model_(model),
      settings_(settings),
      threads_(settings.options.threads),
      cache_(std::move(cache)),
      workspace_(model.device()),
      step_(CapacityOf(settings, followers)),
      runner_({.model = &model,
               .cache = &cache_,
               .workspace = &workspace_,
               .exec = {.threads = &threads_, .machine = &machine},
               .announcer = followers},
              OptionsOfRunner(settings), step_.capacity()),
      pages_(PagesOfOne(settings)) {}

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

Status GivenSequence::CheckRange(std::span<const int32_t> finite, int64_t first) const {
  if (settings_.dtype != DType::kF16) return {};
  const auto bad = std::ranges::find(finite, 0);
  if (bad == finite.end()) return {};
  return F16Overflow(fmt::format("token {}", first + (bad - finite.begin())));
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
  std::vector<int64_t> rows(chunk.size());
  std::iota(rows.begin(), rows.end(), 0);
  step_.Clear();
  step_.AddChunk(SequenceChunk::Of(chunk, length_, path, pages_), settings_.sparse_from);
  step_.AddLogits(rows);
  runner_.Run(step_);
  int64_t first = length_;
  length_ += static_cast<int64_t>(chunk.size());
  Status out;
  // Also after an error: other ranks compute all blocks.
  for (int64_t i = 0; i < step_.logit_blocks(); ++i) {
    const StepLogits block = runner_.NextLogits();
    if (out) out = CheckRange(block.finite, first);
    if (out) out = sink(first, block.logits);
    first += block.logits.shape[0];
  }
  return out;
}

}  // namespace latte

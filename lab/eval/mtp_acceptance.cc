#include "lab/eval/mtp_acceptance.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "src/base/math.h"
#include "src/engine/step/step_settings.h"

namespace latte {
namespace {

// The most probable token after each token of a step; the lowest id of equals.
std::vector<int32_t> Likeliest(Runner& runner, Step& step) {
  std::vector<int64_t> rows(static_cast<size_t>(step.token_count()));
  std::iota(rows.begin(), rows.end(), 0);
  step.AddLogits(rows);
  runner.Run(step);
  std::vector<int32_t> out;
  for (int64_t i = 0; i < step.logit_blocks(); ++i) {
    const TensorView logits = runner.NextLogits().logits;
    for (int64_t t = 0; t < logits.shape[0]; ++t) {
      const float* row = logits.Row<float>(t);
      out.push_back(static_cast<int32_t>(std::max_element(row, row + logits.shape[1]) - row));
    }
  }
  return out;
}

Status CheckText(std::span<const int32_t> text, int64_t vocab) {
  for (const int32_t token : text)
    if (token < 0 || token >= vocab)
      return InvalidArgument(
          fmt::format("token {} is outside the vocabulary [0, {})", token, vocab));
  return {};
}

// Evaluates one text in a single step.
void Measure(Runner& runner, Step& step, std::span<const int32_t> text, MlaPath path,
             std::span<const int32_t> pages, MtpAcceptance& out) {
  if (text.size() < 3) return;
  step.Clear();
  step.AddChunk(SequenceChunk::Of(text, 0, path, pages), runner.SparseFrom(step.kind));
  for (int32_t row = 0; row < static_cast<int32_t>(text.size()); ++row) step.keep.Add(row);
  const std::vector<int32_t> said = Likeliest(runner, step);
  step.Clear();
  step.kind = StepKind::kDraft;
  step.AddChunk(SequenceChunk::Of(text.subspan(1), 0, path, pages), runner.SparseFrom(step.kind));
  for (int32_t row = 0; row + 1 < static_cast<int32_t>(text.size()); ++row) step.sources.Add(row);
  const std::vector<int32_t> drafted = Likeliest(runner, step);
  for (size_t t = 0; t + 1 < text.size(); ++t) {
    ++out.drafted;
    out.accepted += drafted[t] == said[t + 1] ? 1 : 0;
  }
}

}  // namespace

Result<MtpAcceptance> MeasureMtpAcceptance(const Model& model, const Machine& machine,
                                           std::span<const std::vector<int32_t>> texts,
                                           const Settings& settings) {
  if (!model.drafts())
    return InvalidArgument("the model was loaded without a multi-token-prediction layer");
  size_t longest = 1;
  for (const std::vector<int32_t>& text : texts) {
    LATTE_RETURN_IF_ERROR(CheckText(text, model.config().vocab));
    longest = std::max(longest, text.size());
  }
  const MlaPath path = PromptPath(settings.attention);
  const int64_t page_count = CeilDiv(static_cast<int64_t>(longest), settings.options.page_tokens);
  CacheSpec spec = CacheSpecFor(model.config(), settings.attention, settings.cache,
                                settings.options.page_tokens);
  spec.layers = model.config().layers + model.draft_layers();
  LATTE_ASSIGN_OR_RETURN(LatentCache cache, LatentCache::Create(spec, page_count, model.device()));
  std::vector<int32_t> pages(static_cast<size_t>(page_count));
  std::iota(pages.begin(), pages.end(), 0);
  ThreadPool threads(settings.options.threads);
  Workspace workspace(model.device());
  const auto tokens = static_cast<int64_t>(longest);
  Step step({.tokens = tokens,
             .chunks = 2,
             .pages = page_count,
             .logit_rows = tokens,
             .page_tokens = settings.options.page_tokens});
  RunnerOptions options = OptionsOfRunner(settings);
  options.kept_rows = tokens;
  Runner runner({.model = &model,
                 .cache = &cache,
                 .workspace = &workspace,
                 .exec = {.threads = &threads, .machine = &machine}},
                options, step.capacity());
  MtpAcceptance out;
  for (const std::vector<int32_t>& text : texts) Measure(runner, step, text, path, pages, out);
  return out;
}

}  // namespace latte

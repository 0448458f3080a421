#include "src/embed/sequence_logits.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "src/engine/core/given_sequence.h"

namespace latte {

Status CheckLogits(const ModelConfig& config, std::span<const int32_t> tokens, int64_t first,
                   size_t room) {
  const auto count = std::ssize(tokens);
  if (count < 1 || count > config.max_position)
    return InvalidArgument(
        fmt::format("tokens: expected 1 to {}, found {}", config.max_position, count));
  for (int64_t i = 0; i < count; ++i)
    if (const int32_t token = tokens[static_cast<size_t>(i)]; token < 0 || token >= config.vocab)
      return InvalidArgument(fmt::format("tokens[{}]: expected a token id in [0, {}), found {}", i,
                                         config.vocab, token));
  if (first < 0 || first >= count)
    return InvalidArgument(
        fmt::format("first: expected a token in [0, {}), found {}", count, first));
  const auto needed = static_cast<size_t>((count - first) * config.vocab);
  if (room < needed)
    return InvalidArgument(
        fmt::format("capacity: expected room for {} numbers, found {}", needed, room));
  return {};
}

Status ComputeLogits(const SequenceModel& of, std::span<const int32_t> tokens, int64_t first,
                     std::span<float> out, const std::function<bool()>& stopped) {
  const ModelConfig& config = of.model->config();
  EngineOptions options = of.options;
  options.draft_tokens = std::string("0");  // a literal: a false warning of GCC 12 at -O3
  LATTE_ASSIGN_OR_RETURN(const Settings settings,
                         ResolveOptionsForOne(options, config, *of.machine, std::ssize(tokens)));
  LATTE_ASSIGN_OR_RETURN(const auto sequence,
                         GivenSequence::Create(*of.model, *of.machine, settings));
  const auto width = static_cast<size_t>(config.vocab);
  return sequence->AppendPrompt(tokens, [&](int64_t begin, const TensorView& logits) -> Status {
    if (stopped()) return Fail(Code::kCancelled, "cancelled by the program");
    for (int64_t m = std::max<int64_t>(0, first - begin); m < logits.shape[0]; ++m) {
      const auto row = static_cast<size_t>(begin + m - first);
      std::copy_n(logits.Row<float>(m), width, out.data() + row * width);
    }
    return {};
  });
}

}  // namespace latte

#include "src/jobs/score.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "src/engine/sampling/sampler.h"
#include "src/jobs/npy.h"

namespace latte {

Result<ScoreResult> Score(GivenSequence& sequence, std::span<const int32_t> tokens, int64_t vocab,
                          const std::optional<std::string>& logits_path,
                          const std::function<bool()>& interrupted, const JobProgress& progress) {
  std::optional<NpyWriter> writer;
  if (logits_path) {
    LATTE_ASSIGN_OR_RETURN(
        NpyWriter created,
        NpyWriter::Create(*logits_path, static_cast<int64_t>(tokens.size()), vocab));
    writer.emplace(std::move(created));
  }
  ScoreResult result;
  const auto all = std::ssize(tokens);
  if (progress) progress(0, all, {});
  const auto sink = [&](int64_t first, const TensorView& logits) -> Status {
    if (interrupted && interrupted())
      return Fail(Code::kCancelled,
                  logits_path ? fmt::format("interrupted: {} was not written", *logits_path)
                              : std::string("interrupted"));
    for (int64_t m = 0; m < logits.shape[0]; ++m) {
      const auto next = static_cast<size_t>(first + m + 1);
      if (next == tokens.size()) break;
      const std::span<const float> row(logits.Row<float>(m), static_cast<size_t>(vocab));
      const double sum = LogSumExp(row);
      const double logprob = static_cast<double>(row[static_cast<size_t>(tokens[next])]) - sum;
      if (std::isnan(logprob) || !std::isfinite(sum))
        return Corrupt(fmt::format(
            "numerical error: expected finite logits, found others after token {}: the checkpoint "
            "holds NaN, infinity or numbers that overflow; find them with --check-weights, or take "
            "another copy",
            next - 1));
      result.logprobs.push_back(logprob);
      result.total += logprob;
    }
    if (progress) progress(first + logits.shape[0], all, {});
    return writer ? writer->Append(logits) : Status();
  };
  LATTE_RETURN_IF_ERROR(sequence.AppendPrompt(tokens, sink));
  if (writer) LATTE_RETURN_IF_ERROR(writer->Close());
  return result;
}

Result<WindowedScore> ScoreWindows(GivenSequence& sequence, std::span<const int32_t> text,
                                   std::optional<int32_t> start, int64_t window, int64_t vocab,
                                   const std::function<bool()>& interrupted,
                                   const JobProgress& progress) {
  WindowedScore out;
  const auto body = static_cast<size_t>(window - (start ? 1 : 0));
  const auto all = std::ssize(text);
  if (progress) progress(0, all, {});
  for (size_t begin = 0; begin < text.size(); begin += body) {
    const auto part = text.subspan(begin, std::min(body, text.size() - begin));
    std::vector<int32_t> tokens;
    if (start) tokens.push_back(*start);
    tokens.insert(tokens.end(), part.begin(), part.end());
    sequence.Clear();
    const JobProgress shown = [&](int64_t done, int64_t, std::string_view what) {
      if (progress) progress(std::min(static_cast<int64_t>(begin) + done, all), all, what);
    };
    LATTE_ASSIGN_OR_RETURN(const ScoreResult scored,
                           Score(sequence, tokens, vocab, {}, interrupted, shown));
    ++out.windows;
    out.scored += std::ssize(scored.logprobs);
    out.total += scored.total;
  }
  return out;
}

}  // namespace latte

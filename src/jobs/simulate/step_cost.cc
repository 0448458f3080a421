#include "src/jobs/simulate/step_cost.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "src/base/file.h"
#include "src/base/json_out.h"

namespace latte {
namespace {

constexpr size_t kTerms = kStepTerms.size();

// Pairs of query and key: new token i attends to all cached tokens and to i + 1 new ones.
double Pairs(const PieceShape& piece) {
  const auto count = static_cast<double>(piece.count);
  return count * static_cast<double>(piece.cached) + count * (count + 1) / 2;
}

// A piece, or the first part of one, whose tokens attend to all keys before them.
void AddDense(const PieceShape& piece, StepTerms& terms) {
  const auto keys = static_cast<double>(piece.cached + piece.count);
  switch (piece.path) {
    case MlaPath::kAbsorbed:
    case MlaPath::kSparse:
      if (piece.count == 1) {
        terms[7] += keys;
      } else {
        terms[8] += Pairs(piece);
        terms[9] += keys;
      }
      return;
    case MlaPath::kLatent:
      terms[10] += keys;
      terms[11] += Pairs(piece);
      return;
    case MlaPath::kDecompressed:
      terms[11] += Pairs(piece);
      return;
  }
}

void AddPiece(const PieceShape& piece, int64_t sparse_from, StepTerms& terms) {
  terms[1] += 1;
  if (piece.count > 1) terms[2] += 1;
  const int64_t dense = std::clamp<int64_t>(sparse_from - piece.cached, 0, piece.count);
  if (dense > 0) AddDense({dense, piece.cached, piece.path}, terms);
  const PieceShape sparse = {piece.count - dense, piece.cached + dense, MlaPath::kSparse};
  terms[15] += static_cast<double>(sparse.count);
  terms[16] += Pairs(sparse);
}

}  // namespace

int64_t StepShape::tokens() const {
  int64_t sum = 0;
  for (const PieceShape& piece : pieces) sum += piece.count;
  return sum;
}

double ExpectedExperts(int64_t tokens, const MoeDims& moe) {
  if (moe.experts == 0) return 0;
  const auto experts = static_cast<double>(moe.experts);
  const double missed = 1 - static_cast<double>(moe.chosen) / experts;
  return experts * (1 - std::pow(missed, static_cast<double>(tokens)));
}

StepTerms TermsOf(const StepShape& step, const StepModel& model) {
  StepTerms terms = {};
  const int64_t tokens = step.tokens();
  terms[0] = 1;
  terms[3] = static_cast<double>(std::min<int64_t>(tokens, 16));
  terms[4] = static_cast<double>(std::clamp<int64_t>(tokens - 16, 0, 112));
  terms[5] = static_cast<double>(std::max<int64_t>(tokens - 128, 0));
  terms[6] = ExpectedExperts(tokens, model.moe);
  for (const PieceShape& piece : step.pieces) AddPiece(piece, model.sparse_from, terms);
  terms[12] = static_cast<double>(step.drawn);
  terms[13] = step.woken ? 1 : 0;
  terms[14] = step.woken ? static_cast<double>(tokens) : 0;
  return terms;
}

double StepCost::Of(const StepShape& step, const StepModel& model) const {
  const StepTerms terms = TermsOf(step, model);
  double sum = 0;
  for (size_t i = 0; i < kTerms; ++i) sum += seconds[i] * terms[i];
  return sum;
}

// Minimises |A·x − 1|² over x ≥ 0, where row i of A is a step's terms divided by its seconds. Sets
// one cost at a time to its optimum, given the others, until none changes. The objective is convex,
// so this converges to the minimum.
StepCost FitStepCost(std::span<const MeasuredStep> steps, const StepModel& model) {
  std::array<StepTerms, kTerms> gram = {};
  StepTerms target = {};
  for (const MeasuredStep& step : steps) {
    StepTerms row = TermsOf(step.shape, model);
    for (double& term : row) term /= step.seconds;
    for (size_t i = 0; i < kTerms; ++i) {
      target[i] += row[i];
      for (size_t j = 0; j < kTerms; ++j) gram[i][j] += row[i] * row[j];
    }
  }
  constexpr int kMostRounds = 200'000;
  StepCost cost;
  for (int round = 0; round < kMostRounds; ++round) {
    double moved = 0;
    for (size_t i = 0; i < kTerms; ++i) {
      if (gram[i][i] == 0) continue;  // no step has that term
      double rest = target[i];
      for (size_t j = 0; j < kTerms; ++j) rest -= gram[i][j] * cost.seconds[j];
      const double better = std::max(0.0, cost.seconds[i] + rest / gram[i][i]);
      moved = std::max(moved, std::abs(better - cost.seconds[i]) * std::sqrt(gram[i][i]));
      cost.seconds[i] = better;
    }
    if (moved < 1e-9) break;
  }
  return cost;
}

JsonOut ToJson(const StepCost& cost, const std::string& made_for) {
  JsonOut prices = JsonOut::object();
  for (size_t i = 0; i < kTerms; ++i) prices[std::string(kStepTerms[i])] = cost.seconds[i] * 1e6;
  return {{"made_for", made_for}, {"microseconds", std::move(prices)}};
}

Result<StepCost> LoadStepCost(const std::string& path, const std::string& made_for) {
  LATTE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, int64_t{1} << 20));
  LATTE_ASSIGN_OR_RETURN(const Json json, Json::Parse(text, path));
  LATTE_ASSIGN_OR_RETURN(const std::string found, json.GetString("made_for"));
  if (found != made_for)
    return InvalidArgument(
        fmt::format("{}: 'made_for': expected '{}', found '{}'; run `latte bench steps` for this "
                    "model with these flags",
                    path, made_for, found));
  LATTE_ASSIGN_OR_RETURN(const Json prices, json.Get("microseconds"));
  StepCost cost;
  for (size_t i = 0; i < kTerms; ++i) {
    if (i >= kRequiredStepTerms && !prices.Find(kStepTerms[i])) continue;
    LATTE_ASSIGN_OR_RETURN(const double price, prices.GetDouble(kStepTerms[i]));
    if (price < 0)
      return Corrupt(fmt::format("{}: '{}': expected 0 or more, found {}", prices.path(),
                                 kStepTerms[i], price));
    cost.seconds[i] = price * 1e-6;
  }
  return cost;
}

}  // namespace latte

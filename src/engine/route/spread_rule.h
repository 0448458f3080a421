// The rule for spreading requests. The cached rows of a spread request are divided among all groups
// of ranks, and all ranks compute it together, between the steps of the groups (docs/ranks.md). One
// group computes each other request.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "src/engine/route/group_choice.h"
#include "src/engine/settings.h"

namespace latte {

// The engine of spread requests, over all groups of engines with settings `group`: their caches
// together, each of which lends its pages. None: requests are not spread, because the ranks of a
// group divide its cache, or cache keys and values of heads, or because `--deterministic strict`
// chooses keys.
std::optional<Settings> SpreadSettings(const Settings& group);

// One token after `tokens` others, spread over groups instead of computed by one: seconds by the
// machine's rates. A group computes the requests of its own meanwhile, or not.
struct SpreadCost {
  double saved = 0;     // of attention, which the groups divide
  double pass = 0;      // lost to other requests: the weights that one more step reads, as bf16
  double exchange = 0;  // of queries' results and of rows

  bool pays() const { return saved > pass + exchange; }
};

SpreadCost CostOfSpreading(const ModelConfig& config, const MlaRates& rates, int64_t groups,
                           int64_t tokens);
// The least number of tokens for which it pays; none: not for `longest` tokens either.
std::optional<int64_t> SpreadPaysFrom(const ModelConfig& config, const MlaRates& rates,
                                      int64_t groups, int64_t longest);

class SpreadRule {
 public:
  // config: of the model; its `attention` chooses keys or not.
  SpreadRule(const Settings& group, const ModelConfig& config);

  // prompt: tokens; answer: the most tokens. A request is spread
  //   from --dp-spread-tokens tokens of the prompt on; without that, where it pays for the prompt's
  //   length, or if no group has room for the prompt and kExpectedAnswer tokens of the answer.
  bool Spreads(int64_t prompt, int64_t answer) const {
    return prompt >= from_ || prompt + std::min(answer, kExpectedAnswer) > group_tokens_;
  }

  // Prompts of so many tokens are spread although a group has room for them; none: no length.
  std::optional<int64_t> from() const;

 private:
  int64_t from_;
  int64_t group_tokens_;  // the longest sequence of a group
};

}  // namespace latte

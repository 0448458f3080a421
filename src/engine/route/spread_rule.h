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

// The settings of the engine of spread requests. It uses the caches of all groups, whose engines
// have the settings `group` and lend their pages. None: no request is spread, because the ranks of
// a group divide its cache, because the cache has keys and values of heads, or because the model
// chooses keys with `--deterministic strict`.
std::optional<Settings> SpreadSettings(const Settings& group);

// Seconds of one token after `tokens` others, by the machine's rates, if the request is spread
// instead of computed by one group.
struct SpreadCost {
  double saved = 0;     // attention that the other groups compute
  double pass = 0;      // a further step reads the weights, as bf16
  double exchange = 0;  // results of heads, and rows of experts

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

  // prompt: its tokens; answer: the limit of its tokens. A request is spread
  //   - if its prompt has at least --dp-spread-tokens tokens; without that option, if it pays, or
  //   - if no group has room for the prompt and kExpectedAnswer tokens of the answer.
  bool Spreads(int64_t prompt, int64_t answer) const {
    return prompt >= from_ || prompt + std::min(answer, kExpectedAnswer) > group_tokens_;
  }

 private:
  int64_t from_;          // the length from which a prompt is spread although a group has room
  int64_t group_tokens_;  // the longest sequence of a group
};

}  // namespace latte

// Chooses the group of ranks for a request. Rank 0 counts the work of each group: it adds the work
// that it assigns, and corrects the sum by the reports of every step. It uses no clock, so the
// simulation can use it too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "src/engine/route/prefix_table.h"
#include "src/engine/schedule/sequence.h"
#include "src/engine/settings.h"

namespace latte {

// A request that a group has, in tokens but for `known`.
struct GivenRequest {
  int64_t group = 0;
  int64_t prompt = 0;
  int64_t prefill = 0;    // still to be computed before the next token of an answer
  int64_t generated = 0;  // of all answers
  int64_t expected = 0;   // in all answers; an answer counts for at most kExpectedAnswer
  int64_t known = 0;      // pages that the group was expected to have
  PageHashes pages;       // of the prompt, and of the answer if later prompts may begin with it
  bool answer_shared = false;
};

// Limits of answers say little about their lengths, and may be as long as the context.
inline constexpr int64_t kExpectedAnswer = 512;
// So many tokens in the cache are as much load as one token to compute.
inline constexpr int64_t kKeptPerComputed = 8;

class GroupChoice {
 public:
  enum class Policy {
    kBalanced,    // the largest load becomes smallest; of equal groups, the one with fewer requests
    kTokens,      // the fewest tokens of prompts and answers so far
    kRoundRobin,  // the next in turn, as under all policies if groups are equal
  };
  struct Options {
    Policy policy = Policy::kBalanced;
    int64_t groups = 1;
    int64_t page_tokens = 64;
    int64_t pages = 0;           // of each group's prefix cache; 0: none
    bool shares_answers = true;  // later prompts may begin with an answer
  };
  explicit GroupChoice(const Options& options);

  // The request of a new sequence, for one of the groups with room; none: no group has room. It
  // counts when it is added.
  using HasRoom = std::function<bool(int64_t group)>;
  std::optional<GivenRequest> Choose(const Sequence& s, const HasRoom& has_room) const;
  void Add(const GivenRequest& request);

  // News of a group: an answer has one more token; so much is left to compute before the next one.
  void Generated(GivenRequest& request, int32_t token);
  void Prefills(GivenRequest& request, int64_t tokens);
  // All answers have ended.
  void Remove(const GivenRequest& request);

  // Over all requests of a group, kBalanced: tokens to compute before the next one, tokens of
  // answers that are still expected, and a part (kKeptPerComputed) of the tokens so far. kTokens:
  // the tokens so far, of prompts and answers.
  int64_t load(int64_t group) const { return groups_[static_cast<size_t>(group)].load; }

 private:
  struct Group {
    int64_t load = 0;
    int64_t requests = 0;
    PrefixTable prefixes;
  };
  int64_t LoadOf(const GivenRequest& request) const;
  Group& GroupOf(const GivenRequest& request) {
    return groups_[static_cast<size_t>(request.group)];
  }
  GivenRequest For(int64_t group, const Sequence& s, const PageHashes& pages) const;

  Options options_;
  std::vector<Group> groups_;
  int64_t turn_ = 0;
};

// The choice among groups with these settings each.
GroupChoice::Options ChoiceRules(const Settings& settings);

// A group reports it of its admitted sequences: the tokens to compute before the next one, if more
// than one. The expectation holds while a sequence waits for the first time.
std::optional<int64_t> PrefillLeft(const Sequence& s);

}  // namespace latte

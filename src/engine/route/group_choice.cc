#include "src/engine/route/group_choice.h"

#include <algorithm>
#include <span>
#include <utility>

#include "src/engine/schedule/scheduler_rules.h"

namespace latte {

GroupChoice::GroupChoice(const Options& options)
    : options_(options),
      groups_(static_cast<size_t>(options.groups), {.prefixes = PrefixTable(options.pages)}) {}

int64_t GroupChoice::LoadOf(const GivenRequest& request) const {
  const int64_t kept = request.prompt + request.generated;
  if (options_.policy == Policy::kTokens) return kept;
  const int64_t to_come = std::max<int64_t>(0, request.expected - request.generated);
  return request.prefill + to_come + kept / kKeptPerComputed;
}

// The request, if `group` gets it.
GivenRequest GroupChoice::For(int64_t group, const Sequence& s, const PageHashes& pages) const {
  GivenRequest out;
  out.group = group;
  out.prompt = s.length();
  out.expected = s.spec.outputs * std::min(s.spec.max_len - s.length(), kExpectedAnswer);
  // One token is left to compute.
  const int64_t most = s.spec.reuses_prefix ? (s.length() - 1) / options_.page_tokens : 0;
  out.known = std::min(groups_[static_cast<size_t>(group)].prefixes.Known(pages.all()), most);
  out.prefill = s.length() - out.known * options_.page_tokens;
  out.answer_shared = options_.shares_answers && s.spec.outputs == 1;
  return out;
}

std::optional<GivenRequest> GroupChoice::Choose(const Sequence& s, const HasRoom& has_room) const {
  PageHashes pages;
  if (options_.policy == Policy::kBalanced && options_.pages > 0) {
    pages = PageHashes(s.spec.salt, options_.page_tokens);
    pages.Append(s.tokens);
  }
  const int64_t largest = std::ranges::max(groups_, {}, &Group::load).load;
  std::optional<GivenRequest> best;
  std::pair<int64_t, int64_t> least;
  for (int64_t i = 0; i < options_.groups; ++i) {
    const int64_t index = (turn_ + i) % options_.groups;
    if (!has_room(index)) continue;
    GivenRequest request = For(index, s, pages);
    const Group& group = groups_[static_cast<size_t>(index)];
    std::pair<int64_t, int64_t> cost = {0, 0};
    if (options_.policy == Policy::kBalanced)
      cost = {std::max(largest, group.load + LoadOf(request)), group.requests};
    if (options_.policy == Policy::kTokens) cost = {group.load, 0};
    if (best && cost >= least) continue;
    best = std::move(request);
    least = cost;
  }
  if (best) best->pages = std::move(pages);
  return best;
}

void GroupChoice::Add(const GivenRequest& request) {
  turn_ = request.group + 1;
  Group& group = GroupOf(request);
  group.load += LoadOf(request);
  ++group.requests;
  group.prefixes.Use(request.pages.all());
}

void GroupChoice::Generated(GivenRequest& request, int32_t token) {
  Group& group = GroupOf(request);
  group.load -= LoadOf(request);
  request.prefill = 0;
  if (++request.generated == 1) group.prefixes.Use(request.pages.all());
  group.load += LoadOf(request);
  if (request.answer_shared) request.pages.Append({&token, 1});
}

void GroupChoice::Prefills(GivenRequest& request, int64_t tokens) {
  Group& group = GroupOf(request);
  group.load -= LoadOf(request);
  request.prefill = tokens;
  group.load += LoadOf(request);
}

void GroupChoice::Remove(const GivenRequest& request) {
  Group& group = GroupOf(request);
  group.load -= LoadOf(request);
  --group.requests;
  const std::span<const uint64_t> pages = request.pages.all();
  if (request.generated > 0)
    group.prefixes.Use(pages);
  else  // perhaps it was never computed
    group.prefixes.Forget(pages.subspan(static_cast<size_t>(request.known)));
}

GroupChoice::Options ChoiceRules(const Settings& settings) {
  const EngineOptions& o = settings.options;
  GroupChoice::Options out;
  if (o.dp_policy == "tokens") out.policy = GroupChoice::Policy::kTokens;
  if (o.dp_policy == "round-robin") out.policy = GroupChoice::Policy::kRoundRobin;
  out.groups = o.dp;
  out.page_tokens = o.page_tokens;
  out.pages = o.prefix_cache ? settings.pages : 0;
  out.shares_answers = SharesGenerated(settings);
  return out;
}

std::optional<int64_t> PrefillLeft(const Sequence& s) {
  const bool admitted = s.admitted_before || s.preemptions > 0;
  if (!admitted || s.remain_len() < 2) return std::nullopt;
  return s.remain_len();
}

}  // namespace latte

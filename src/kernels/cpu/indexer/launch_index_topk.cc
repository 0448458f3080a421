// index_topk: divides the call among threads, keeps the best keys while they are scored, and
// merges.
//
// A work item is up to kTokens new tokens of one sequence × a range of its keys. Kernels score a
// block of keys for all tokens of the item; each token then takes the keys that are better than the
// worst of its K best so far. Ranges of keys are cut only if there are fewer groups of tokens than
// threads need (a decoding step); then every item keeps its K best keys in shared memory, and a
// second pass takes the best of them. The order of keys (best_keys.h) is total, so no division
// changes a position.
#include <numeric>
#include <type_traits>

#include "src/kernels/cpu/cached_row_layout.h"
#include "src/kernels/cpu/indexer/best_keys.h"
#include "src/kernels/cpu/parallel.h"

namespace latte::cpu {
namespace {

// Tokens that share converted keys: converting costs an eighth of scoring for one token with 32
// heads.
constexpr int64_t kTokens = 8;
constexpr int64_t kIndexItemsPerThread = 4;
// Fewest keys of a range; no range has fewer than K keys either, because all of them would be kept.
constexpr int64_t kMinRange = 1024;

// Tokens [token, token + count) of a sequence, whose keys are cut into `ranges`.
struct Group {
  const SequenceChunk* sequence;
  int64_t row;  // of q
  int64_t token, count;
  int64_t ranges, range_keys;
  bool scored;      // scores are wanted
  RankedKey* kept;  // [ranges, count, K], if there are several ranges
  int32_t* kept_count;

  int64_t KeysOf(int64_t i) const { return sequence->cached_len + token + i + 1; }
  int64_t keys() const { return KeysOf(count - 1); }  // of the last token
  bool takes_all(int64_t k) const { return keys() <= (scored ? 0 : k); }
  int64_t pairs(int64_t k) const { return takes_all(k) ? 0 : count * keys(); }
};

template <class F>
void ForEachGroup(const IndexTopKOp::Params& p, const F& f) {
  for (const SequenceChunk& s : p.sequences) {
    const int64_t row = IndexTopKOp::FirstRow(p, s);
    for (int64_t token = 0; token < s.count; token += kTokens)
      f(Group{&s, row + token, token, std::min(kTokens, s.count - token), 1, 0, !p.scores.empty(),
              nullptr, nullptr});
  }
}

struct Item {
  int64_t group, range;
};

struct Plan {
  std::span<Group> groups;
  std::span<Item> items;
  int64_t macs = 0;
  bool merges = false;
};

// Cuts the keys of a group so that an item has about item_pairs pairs of token and key.
void CutRanges(int64_t item_pairs, int64_t k, Group& group) {
  const int64_t most = std::max<int64_t>(group.keys() / std::max(k, kMinRange), 1);
  const int64_t ranges =
      std::clamp<int64_t>(group.pairs(k) / std::max<int64_t>(item_pairs, 1), 1, most);
  group.range_keys = RoundUp(std::max<int64_t>(CeilDiv(group.keys(), ranges), 1), kIndexKeys);
  group.ranges = std::max<int64_t>(CeilDiv(group.keys(), group.range_keys), 1);
}

// The plan lives in the threads' scratch.
Plan MakePlan(const IndexTopKOp::Params& p, const Exec& exec) {
  const IndexTopKOp::Shape s = IndexTopKOp::ShapeOf(p);
  int64_t pairs = 0;
  ForEachGroup(p, [&](const Group& group) { pairs += group.pairs(s.k); });
  const int64_t item_pairs = pairs / (kIndexItemsPerThread * exec.threads->threads());
  int64_t groups = 0;
  int64_t items = 0;
  int64_t kept = 0;  // [ranges, count] lists
  ForEachGroup(p, [&](Group group) {
    CutRanges(item_pairs, s.k, group);
    ++groups;
    items += group.ranges;
    if (group.ranges > 1) kept += group.ranges * group.count;
  });
  constexpr int64_t kPlaces = 4;
  const int64_t bytes =
      groups * static_cast<int64_t>(sizeof(Group)) + items * static_cast<int64_t>(sizeof(Item)) +
      kept *
          (s.k * static_cast<int64_t>(sizeof(RankedKey)) + static_cast<int64_t>(sizeof(int32_t)));
  std::byte* at = exec.threads->Scratch(bytes + kPlaces * 64);
  Plan plan;
  plan.macs = pairs * s.h * s.w;
  plan.groups = {Take<Group>(at, groups), static_cast<size_t>(groups)};
  plan.items = {Take<Item>(at, items), static_cast<size_t>(items)};
  auto* keys = Take<RankedKey>(at, kept * s.k);
  auto* counts = Take<int32_t>(at, kept);
  size_t next_group = 0;
  size_t next_item = 0;
  ForEachGroup(p, [&](Group group) {
    CutRanges(item_pairs, s.k, group);
    for (int64_t range = 0; range < group.ranges; ++range)
      plan.items[next_item++] = {static_cast<int64_t>(next_group), range};
    if (group.ranges > 1) {
      plan.merges = true;
      group.kept = keys;
      group.kept_count = counts;
      keys += group.ranges * group.count * s.k;
      counts += group.ranges * group.count;
    }
    plan.groups[next_group++] = group;
  });
  return plan;
}

std::span<int32_t> ListAt(const IndexTopKOp::Params& p, int64_t row) {
  return {p.positions.Row<int32_t>(row), static_cast<size_t>(p.positions.shape[1])};
}
void WriteList(const IndexTopKOp::Params& p, int64_t row, std::span<const RankedKey> keys) {
  const std::span<int32_t> list = ListAt(p, row);
  std::ranges::transform(keys, list.begin(), PositionOf);
  std::ranges::fill(list.subspan(keys.size()), -1);
  if (p.scores.empty()) return;
  float* const scores = p.scores.Row<float>(row);
  std::fill(std::ranges::transform(keys, scores, ScoreOf).out, scores + list.size(), 0.0f);
}
void WriteAll(int64_t keys, std::span<int32_t> list) {
  const auto count = static_cast<size_t>(keys);
  std::iota(list.begin(), list.begin() + keys, 0);
  std::ranges::fill(list.subspan(count), -1);
}

struct IndexScratch {
  alignas(64) float scores[kTokens * kIndexKeys];
  BestKeys best[kTokens];
};

IndexScoreTask IndexTaskOf(const IndexTopKOp::Params& p, const Group& group) {
  const IndexTopKOp::Shape s = IndexTopKOp::ShapeOf(p);
  IndexScoreTask t = {};
  t.q = FloatAt(p.q, group.row, 0);
  t.weights = p.weights.Row<float>(group.row);
  t.q_stride = p.q.stride[0];
  t.q_head_stride = p.q.stride[1];
  t.weights_stride = p.weights.stride[0];
  t.rows = group.count;
  t.heads = s.h;
  t.width = s.w;
  t.pages = p.pages.data;
  t.cache = CachedRowLayoutOf(s.cache, p.row_format, s.w, 0);
  t.page_tokens = s.page_tokens;
  t.page_table = group.sequence->pages.data();
  return t;
}

// Scores keys [begin, end) and leaves the best of every token in own.best. copy: BestKeys::Room.
void ScoreRange(const IndexTopKKernel& kernel, const Group& group, int64_t begin, int64_t end,
                IndexScoreTask& t, IndexScratch& own, RankedKey* copy) {
  t.scores = own.scores;
  for (t.key_begin = begin; t.key_begin < end; t.key_begin += kIndexKeys) {
    t.keys = std::min(kIndexKeys, end - t.key_begin);
    kernel.scores(t);
    for (int64_t i = 0; i < group.count; ++i) {
      const int64_t seen = std::clamp<int64_t>(group.KeysOf(i) - t.key_begin, 0, t.keys);
      own.best[i].Add({own.scores + i * kIndexKeys, static_cast<size_t>(seen)}, t.key_begin, copy);
    }
  }
  for (int64_t i = 0; i < group.count; ++i) own.best[i].Shrink(copy);
}

// room: (kTokens + 1) · BestKeys::Room keys.
void RunIndexItem(const IndexTopKKernel& kernel, const IndexTopKOp::Params& p, const Group& group,
                  int64_t range, std::byte* scratch, RankedKey* room) {
  const int64_t k = p.positions.shape[1];
  if (group.takes_all(k)) {
    for (int64_t i = 0; i < group.count; ++i)
      if (group.scored)
        WriteList(p, group.row + i, {});
      else
        WriteAll(group.KeysOf(i), ListAt(p, group.row + i));
    return;
  }
  auto& own = LaunchScratch<IndexScratch>(scratch);
  const int64_t each = BestKeys::Room(k);
  for (int64_t i = 0; i < group.count; ++i) own.best[i].Begin(room + (i + 1) * each, k);
  IndexScoreTask t = IndexTaskOf(p, group);
  t.scratch = TargetScratch(scratch);
  const int64_t begin = range * group.range_keys;
  ScoreRange(kernel, group, begin, std::min(begin + group.range_keys, group.keys()), t, own, room);
  for (int64_t i = 0; i < group.count; ++i) {
    const std::span<const RankedKey> keys = own.best[i].Keys();
    if (group.ranges == 1) {
      WriteList(p, group.row + i, keys);
      continue;
    }
    const int64_t at = range * group.count + i;
    std::ranges::copy(keys, group.kept + at * k);
    group.kept_count[at] = static_cast<int32_t>(keys.size());
  }
}

// The best of what the ranges kept for token i, in `room`: 2 · ranges · K keys.
void MergeToken(const IndexTopKOp::Params& p, const Group& group, int64_t i, RankedKey* room) {
  const int64_t k = p.positions.shape[1];
  RankedKey* end = room;
  for (int64_t range = 0; range < group.ranges; ++range) {
    const int64_t at = range * group.count + i;
    end = std::copy_n(group.kept + at * k, group.kept_count[at], end);
  }
  WriteList(p, group.row + i, KeepBest({room, end}, k, room + group.ranges * k));
}

}  // namespace

bool Supports(const IndexTopKOp::Shape& s) {
  return s.w <= kMaxIndexWidth && (s.kind == CacheFormat::kPlain || s.kind == CacheFormat::kF8);
}

void IndexTopK(const IndexTopKKernel& kernel, const IndexTopKOp::Params& p, const Exec& exec) {
  constexpr auto kKeyBytes = static_cast<int64_t>(sizeof(RankedKey));
  const int64_t k = p.positions.shape[1];
  const Plan plan = MakePlan(p, exec);
  ForEachTaskInScratch(
      std::ssize(plan.items), plan.macs, exec,
      [&](int64_t i, std::byte* scratch) {
        const Item& item = plan.items[static_cast<size_t>(i)];
        RunIndexItem(kernel, p, plan.groups[static_cast<size_t>(item.group)], item.range, scratch,
                     reinterpret_cast<RankedKey*>(scratch + kTaskBytes));
      },
      (kTokens + 1) * BestKeys::Room(k) * kKeyBytes);
  if (!plan.merges) return;
  int64_t most_ranges = 1;
  for (const Group& group : plan.groups) most_ranges = std::max(most_ranges, group.ranges);
  exec.threads->ParallelFor(std::ssize(plan.groups), 2 * most_ranges * k * kKeyBytes,
                            [&](int64_t i, std::byte* scratch) {
                              const Group& group = plan.groups[static_cast<size_t>(i)];
                              if (group.ranges == 1) return;
                              for (int64_t token = 0; token < group.count; ++token)
                                MergeToken(p, group, token, reinterpret_cast<RankedKey*>(scratch));
                            });
}

}  // namespace latte::cpu

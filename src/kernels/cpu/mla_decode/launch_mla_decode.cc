// Absorbed attention: divides the call among threads and merges the results.
//
// A row is one (token, head) pair of one sequence. The keys of a sequence are divided into splits
// of kSplitKeys keys (key_owner.h), anchored at position 0. Every split is computed from zero, and
// splits are merged from left to right, so the bytes of a row do not depend on which work items
// computed them. A work item is a group of rows × consecutive splits; its size follows the number
// of threads.
//
// With lists of positions, the keys of a token are its listed rows, in order. Before each split, an
// item copies the split's rows to a page of its own in scratch, so kernels read them as they read
// any page, and a list of all positions gives the bytes of attention without lists. Items of other
// heads of the token copy the same rows again.
//
// With several owners of keys, the splits of a sequence are the splits of one owner, numbered from
// 0 on. A call that returns splits writes each to its place and merges none.
#include <limits>

#include "src/kernels/cpu/cached_row_layout.h"
#include "src/kernels/cpu/mla_decode/token_runs.h"
#include "src/kernels/cpu/parallel.h"
#include "src/kernels/cpu/tuning.h"

namespace latte::cpu {
namespace {

static_assert(kSplitKeys % 128 == 0, "kernels cut their blocks at multiples of 128 keys");
// Work items per thread if a call has several sequences: sequences differ in length, and with
// several items per thread the last one ends not far behind the others. The items of one sequence
// are alike, and one per thread packs the queries only once.
constexpr int64_t kDecodeItemsPerThread = 4;

bool IsQuantised(CacheFormat kind) { return kind != CacheFormat::kPlain; }

struct WorkItem {
  TokenRun tokens;
  int64_t row, rows;               // among the count·H rows of the tokens
  int64_t split_begin, split_end;  // splits of this item
  int64_t splits;                  // all splits of these rows; 1 if the owner has none
  int64_t split_rows;              // tokens of splits of earlier sequences, in Params::splits
  int64_t first_end;               // split_end of the item that begins at split 0
  int64_t index, count;            // among the items of these rows
  float* buffers;                  // results of the splits from first_end on
};

// How a run of tokens is divided into groups of rows × splits.
struct Blocking {
  int64_t groups, splits, splits_per_item;
  int64_t items_per_group() const { return CeilDiv(splits, splits_per_item); }
};

struct DecodeWork {
  int64_t h, c;
  int64_t max_rows;    // of an item
  int64_t item_pairs;  // rows × keys that an item should have
  int64_t macs;
  KeyOwner owner;
  bool returns_splits = false;
  int64_t split_rows = 0;  // of sequences that have items
  bool merges = false;
  const Tuning* tuning = nullptr;
  std::span<WorkItem> items;
  float* o;                  // the op's output
  float *max, *sum;          // [T·H]
  float* buffers = nullptr;  // buffers not yet given to an item
};

int64_t BufferFloats(int64_t rows, int64_t c) { return RoundUp(rows * (c + 2), 16); }

Blocking ChooseBlocking(const DecodeWork& list, const TokenRun& run) {
  const int64_t rows = run.count * list.h;
  Blocking blocking;
  blocking.groups = CeilDiv(rows, list.max_rows);
  blocking.splits = std::max<int64_t>(list.owner.SplitsOf(run.keys), 1);
  const int64_t group_rows = CeilDiv(rows, std::max<int64_t>(blocking.groups, 1));
  const int64_t split_pairs = std::max<int64_t>(group_rows * kSplitKeys, 1);
  blocking.splits_per_item = std::clamp<int64_t>(list.item_pairs / split_pairs, 1, blocking.splits);
  return blocking;
}

// The number of items if every item had one split.
int64_t CountSmallestItems(const DecodeWork& list, const MlaDecodeOp::Params& p) {
  int64_t count = 0;
  ForEachTokenRun(p, [&](const TokenRun& run) {
    const Blocking blocking = ChooseBlocking(list, run);
    count += blocking.groups * blocking.splits;
  });
  return count;
}

// Chooses the size of items. If there are fewer splits than threads, groups of rows get smaller
// than the target's maximum.
void ChooseItemSize(DecodeWork& list, const MlaDecodeOp::Params& p, const Exec& exec) {
  const MlaDecodeOp::Shape shape = MlaDecodeOp::ShapeOf(p);
  list.h = shape.h;
  list.c = shape.c;
  int64_t pairs = 0;
  int64_t runs = 0;
  ForEachTokenRun(p, [&](const TokenRun& run) {
    pairs += run.count * shape.h * list.owner.KeysOf(run.keys);
    ++runs;
  });
  list.macs = pairs * (2 * shape.c + shape.r);
  const int64_t threads = exec.threads->threads();
  list.item_pairs = pairs / (threads * (runs == 1 ? 1 : kDecodeItemsPerThread));
  while (list.max_rows > 1 && CountSmallestItems(list, p) < threads)
    list.max_rows = CeilDiv(list.max_rows, 2);
}

void AddItems(DecodeWork& list, const TokenRun& run, size_t& at) {
  const Blocking blocking = ChooseBlocking(list, run);
  const int64_t rows = run.count * list.h;
  for (int64_t group = 0; group < blocking.groups; ++group) {
    WorkItem item;
    item.tokens = run;
    item.row = group * rows / blocking.groups;
    item.rows = (group + 1) * rows / blocking.groups - item.row;
    item.splits = blocking.splits;
    item.split_rows = list.split_rows;
    item.first_end = blocking.splits_per_item;
    item.count = blocking.items_per_group();
    item.buffers = list.buffers;
    for (item.index = 0; item.index < item.count; ++item.index) {
      item.split_begin = item.index * blocking.splits_per_item;
      item.split_end = std::min(item.split_begin + blocking.splits_per_item, blocking.splits);
      list.items[at++] = item;
    }
    if (item.count == 1 || list.returns_splits) continue;
    list.merges = true;
    list.buffers += (blocking.splits - item.first_end) * BufferFloats(item.rows, list.c);
  }
  list.split_rows += list.owner.SplitsOf(run.keys) * run.count;
}

// The list, its items and its buffers live in the threads' scratch.
DecodeWork MakeDecodeWork(const MlaDecodeOp::Params& p, int64_t max_rows, const Exec& exec) {
  DecodeWork list;
  list.max_rows = max_rows;
  list.tuning = &TuningOf(*exec.machine);
  list.owner = p.owner;
  list.returns_splits = !p.splits.o.empty();
  ChooseItemSize(list, p, exec);
  int64_t items = 0;
  int64_t buffers = 0;
  ForEachTokenRun(p, [&](const TokenRun& run) {
    const Blocking blocking = ChooseBlocking(list, run);
    items += blocking.groups * blocking.items_per_group();
    if (list.returns_splits) return;
    // Groups differ by at most one row.
    const int64_t group_rows = CeilDiv(run.count * list.h, std::max<int64_t>(blocking.groups, 1));
    buffers += blocking.groups * (blocking.splits - blocking.splits_per_item) *
               BufferFloats(group_rows, list.c);
  });
  const int64_t rows = MlaDecodeOp::ShapeOf(p).t * list.h;
  const int64_t bytes = items * static_cast<int64_t>(sizeof(WorkItem)) + (2 * rows + buffers) * 4;
  std::byte* at = exec.threads->Scratch(bytes + 3 * 64);
  list.items = {Take<WorkItem>(at, items), static_cast<size_t>(items)};
  list.max = Take<float>(at, rows);
  list.sum = Take<float>(at, rows);
  list.buffers = Take<float>(at, buffers);
  list.o = p.o_latent.Ptr<float>();
  size_t next = 0;
  ForEachTokenRun(p, [&](const TokenRun& run) { AddItems(list, run, next); });
  return list;
}

// The result of an item's rows from `row` on; its o is the output of the op.
SplitResult ResultOf(const DecodeWork& list, const WorkItem& item, int64_t row) {
  const int64_t at = item.tokens.token * list.h + item.row + row;
  return {list.o + at * list.c, list.max + at, list.sum + at};
}

// The buffer of a split that is merged later.
SplitResult BufferOf(const DecodeWork& list, const WorkItem& item, int64_t split, int64_t row) {
  float* const o = item.buffers + (split - item.first_end) * BufferFloats(item.rows, list.c);
  float* const max = o + item.rows * list.c;
  return {o + row * list.c, max + row, max + item.rows + row};
}

// The place of a split that the op returns.
SplitResult ReturnedOf(const MlaDecodeOp::Params& p, const DecodeWork& list, const WorkItem& item,
                       int64_t split) {
  const int64_t at = (item.split_rows + split * item.tokens.count) * list.h + item.row;
  return {p.splits.o.Ptr<float>() + at * list.c, p.splits.max.Ptr<float>() + at,
          p.splits.sum.Ptr<float>() + at};
}

void Normalize(const MlaDecodeKernel& kernel, const MlaDecodeOp::Params& p, const DecodeWork& list,
               const WorkItem& item, int64_t row, int64_t rows) {
  const int64_t at = item.tokens.token * list.h + item.row + row;
  float* const lse = p.lse.empty() ? nullptr : p.lse.Ptr<float>() + at;
  kernel.normalize_split(ResultOf(list, item, row), rows, list.c, lse);
}

// The number of keys that a row of these tokens sees.
int64_t KeysOf(const TokenRun& run, int64_t row, int64_t heads) {
  return run.keys - run.count + row / heads + 1;
}

DecodeTask DecodeTaskOf(const MlaDecodeOp::Params& p, const DecodeWork& list, const WorkItem& item,
                        DecodeQuery* q) {
  const MlaDecodeOp::Shape s = MlaDecodeOp::ShapeOf(p);
  for (int64_t i = 0; i < item.rows; ++i) {
    const int64_t row = item.row + i;
    const int64_t token = item.tokens.token + row / s.h;
    q[i] = {FloatAt(p.q_latent, token, row % s.h), FloatAt(p.q_rope, token, row % s.h),
            KeysOf(item.tokens, row, s.h)};
  }
  DecodeTask t = {};
  t.q = q;
  t.pages = p.pages.data;
  t.cache = CachedRowLayoutOf(s.cache, p.row_format, s.c, s.r);
  t.page_tokens = s.page_tokens;
  t.page_table = item.tokens.sequence->pages.data();
  t.rows = item.rows;
  t.c = s.c;
  t.r = s.r;
  t.scale = p.scale;
  t.tuning = list.tuning;
  return t;
}

// Where the results of an item go. The item that begins at split 0 merges each split as soon as it
// is computed; other items keep their splits in buffers.
struct ItemOutputs {
  const MlaDecodeKernel& kernel;
  const MlaDecodeOp::Params& p;
  const DecodeWork& list;
  const WorkItem& item;
  SplitResult next;  // holds a split until it is merged
  int64_t split = item.split_begin;

  bool is_buffered() const { return item.split_begin > 0; }
  // Merges the split before `split`.
  void Merge() {
    if (!list.returns_splits && !is_buffered() && split > 1)
      kernel.merge_splits(ResultOf(list, item, 0), next, 0, 1, item.rows, list.c);
  }
  static SplitResult Next(void* self) {
    ItemOutputs& outputs = *static_cast<ItemOutputs*>(self);
    outputs.Merge();
    const int64_t split = outputs.split++;
    if (outputs.list.returns_splits)
      return ReturnedOf(outputs.p, outputs.list, outputs.item, split);
    if (split == 0) return ResultOf(outputs.list, outputs.item, 0);
    return outputs.is_buffered() ? BufferOf(outputs.list, outputs.item, split, 0) : outputs.next;
  }
};

struct DecodeScratch {
  alignas(64) float o[kMaxLargeDecodeRows * kMaxDecodeWidth];
  float max[kMaxLargeDecodeRows];
  float sum[kMaxLargeDecodeRows];
  DecodeQuery q[kMaxLargeDecodeRows];
};

// The result of rows without keys.
void StoreNoKeys(const SplitResult& out, int64_t rows, int64_t c) {
  std::fill_n(out.o, rows * c, 0.0f);
  std::fill_n(out.max, rows, -std::numeric_limits<float>::infinity());
  std::fill_n(out.sum, rows, 0.0f);
}

// Computes the splits of an item of one token with a list, one by one. Keys count from the
// beginning of the split, which changes no byte: the size of a split is a multiple of all block
// sizes. page: room for kSplitKeys cached rows.
void RunListedSplits(const MlaDecodeKernel& kernel, const MlaDecodeOp::Params& p,
                     const WorkItem& item, DecodeTask& t, DecodeQuery* q, std::byte* page) {
  static constexpr int32_t kPageTable[] = {0};
  const SequenceChunk& sequence = *item.tokens.sequence;
  const int64_t place = item.tokens.token - MlaDecodeOp::FirstRow(p, sequence);
  const std::span<const int32_t> list =
      ListOf(p.positions, item.tokens.token, sequence.cached_len + place);
  if (list.empty()) return StoreNoKeys(t.outputs.next(t.outputs.self), item.rows, t.c);
  t.pages = page;
  t.page_tokens = kSplitKeys;
  t.page_table = kPageTable;
  t.splits = 1;
  for (int64_t split = item.split_begin; split < item.split_end; ++split) {
    const int64_t begin = split * kSplitKeys;
    t.key_end = std::min(kSplitKeys, std::ssize(list) - begin);
    CopyRows(p, sequence, list.subspan(static_cast<size_t>(begin), static_cast<size_t>(t.key_end)),
             page);
    for (int64_t i = 0; i < item.rows; ++i) q[i].visible = t.key_end;
    kernel.mla_decode(t);
  }
}

// Computes the splits of an item one by one, if there are several owners.
void RunOwnedSplits(const MlaDecodeKernel& kernel, const DecodeWork& list, const WorkItem& item,
                    DecodeTask& t) {
  if (list.owner.SplitsOf(item.tokens.keys) == 0) {
    if (!list.returns_splits) StoreNoKeys(t.outputs.next(t.outputs.self), item.rows, t.c);
    return;
  }
  const int64_t visible = t.q[item.rows - 1].visible;
  t.splits = 1;
  for (int64_t i = item.split_begin; i < item.split_end; ++i) {
    t.key_begin = list.owner.Split(i) * kSplitKeys;
    t.key_end = std::max(t.key_begin, std::min(visible, t.key_begin + kSplitKeys));
    kernel.mla_decode(t);
  }
}

void RunDecodeItem(const MlaDecodeKernel& kernel, const MlaDecodeOp::Params& p,
                   const DecodeWork& list, const WorkItem& item, std::byte* scratch) {
  auto& own = LaunchScratch<DecodeScratch>(scratch);
  DecodeTask t = DecodeTaskOf(p, list, item, own.q);
  t.scratch = TargetScratch(scratch);
  ItemOutputs outputs = {kernel, p, list, item, {own.o, own.max, own.sum}};
  t.split_keys = kSplitKeys;
  t.outputs = {&outputs, ItemOutputs::Next};
  if (p.owner.count > 1) {
    RunOwnedSplits(kernel, list, item, t);
  } else if (p.positions.empty()) {
    t.key_begin = item.split_begin * kSplitKeys;
    t.key_end = std::min(own.q[item.rows - 1].visible, item.split_end * kSplitKeys);
    t.splits = item.split_end - item.split_begin;
    kernel.mla_decode(t);
  } else {
    RunListedSplits(kernel, p, item, t, own.q, scratch + kTaskBytes);
  }
  outputs.Merge();
  if (item.count == 1 && !list.returns_splits) Normalize(kernel, p, list, item, 0, item.rows);
}

// Merges the buffered splits in key order. Each item merges a share of its group's rows.
void MergeItem(const MlaDecodeKernel& kernel, const MlaDecodeOp::Params& p, const DecodeWork& list,
               const WorkItem& item) {
  if (item.count == 1) return;
  const int64_t row = item.index * item.rows / item.count;
  const int64_t rows = (item.index + 1) * item.rows / item.count - row;
  kernel.merge_splits(ResultOf(list, item, row), BufferOf(list, item, item.first_end, row),
                      BufferFloats(item.rows, list.c), item.splits - item.first_end, rows, list.c);
  Normalize(kernel, p, list, item, row, rows);
}

}  // namespace

bool Supports(const MlaDecodeOp::Shape& s) {
  return s.c + s.r <= kMaxDecodeWidth && (IsPlain(s.cache) || IsQuantised(s.kind));
}
bool Supports(const GatherPagesOp::Shape& s) { return IsPlain(s.cache) || IsQuantised(s.kind); }

void MlaDecode(const MlaDecodeKernel& kernel, const MlaDecodeOp::Params& p, const Exec& exec) {
  LATTE_CHECK(p.positions.empty() || (p.owner.count == 1 && p.splits.o.empty()),
              "lists of positions with owners of keys");
  const DecodeWork list = MakeDecodeWork(p, kernel.max_rows, exec);
  const auto items = static_cast<int64_t>(list.items.size());
  const auto item = [&list](int64_t i) -> const WorkItem& {
    return list.items[static_cast<size_t>(i)];
  };
  const int64_t copied = p.positions.empty() ? 0 : kSplitKeys * RowBytes(p);
  ForEachTaskInScratch(
      items, list.macs, exec,
      [&](int64_t i, std::byte* scratch) { RunDecodeItem(kernel, p, list, item(i), scratch); },
      copied);
  if (!list.merges) return;
  ForEachTask(items, list.macs, exec, [&](int64_t i) { MergeItem(kernel, p, list, item(i)); });
}

void GatherPages(const Target& target, const GatherPagesOp::Params& p, const Exec& exec) {
  constexpr int64_t kRows = 32;
  const GatherPagesOp::Shape s = GatherPagesOp::ShapeOf(p);
  const int64_t c = IsQuantised(s.kind) ? s.c : s.w;
  // Converting a number takes as long as a few multiply-adds.
  ForEachTask(CeilDiv(s.s, kRows), 2 * s.s * s.w, exec, [&](int64_t task) {
    GatherTask t;
    t.pages = p.pages.data;
    t.cache = CachedRowLayoutOf(s.cache, p.row_format, c, s.w - c);
    t.page_tokens = p.pages.shape[1];
    t.page_table = p.page_table.data();
    t.begin = p.key_begin + task * kRows;
    t.count = std::min(kRows, s.s - task * kRows);
    t.y = p.y.Row<float>(task * kRows);
    target.gather_pages(t);
  });
}

}  // namespace latte::cpu

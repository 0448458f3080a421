#include "src/engine/step/step.h"

#include <algorithm>

#include "src/base/check.h"
#include "src/base/math.h"

namespace latte {

// Takes lists from a block, one after another.
struct Step::Room {
  explicit Room(int64_t bytes) : block(DType::kU8, {bytes}) {}

  template <class T>
  StepList<T> Take(int64_t count) {
    constexpr int64_t kAlignment = 64;
    T* const at = reinterpret_cast<T*>(block.Ptr<std::byte>() + used);
    used += CeilDiv(count * static_cast<int64_t>(sizeof(T)), kAlignment) * kAlignment;
    LATTE_CHECK(used <= block.bytes(), "a step of {} bytes", block.bytes());
    return StepList<T>(std::span(at, static_cast<size_t>(count)));
  }

  Tensor block;
  int64_t used = 0;
};

// Room for all lists of `c`, each rounded up to a cache line.
int64_t Step::BlockBytes(const StepCapacity& c) {
  constexpr int64_t kLists = 11;
  const int64_t of_tokens = 4 * sizeof(int32_t) + sizeof(int64_t);
  return c.tokens * of_tokens + c.logit_rows * 2 * static_cast<int64_t>(sizeof(int32_t)) +
         c.chunks * static_cast<int64_t>(sizeof(StepChunk)) +
         c.pages * static_cast<int64_t>(sizeof(int32_t)) +
         c.copies * static_cast<int64_t>(sizeof(PageCopy)) +
         c.groups * static_cast<int64_t>(sizeof(int64_t)) + kLists * 64;
}

Step::Step(const StepCapacity& capacity) : Step(capacity, Room(BlockBytes(capacity))) {}

// Lists that a device reads come first. Pages, whose number varies most, are the last of them.
Step::Step(const StepCapacity& c, Room room)
    : tokens(room.Take<int32_t>(c.tokens)),
      positions(room.Take<int32_t>(c.tokens)),
      slots(room.Take<int64_t>(c.tokens)),
      sources(room.Take<int32_t>(c.tokens)),
      keep(room.Take<int32_t>(c.tokens)),
      logit_rows(room.Take<int32_t>(c.logit_rows)),
      chunks(room.Take<StepChunk>(c.chunks)),
      pages(room.Take<int32_t>(c.pages)),
      logit_ends(room.Take<int32_t>(c.logit_rows)),
      copies(room.Take<PageCopy>(c.copies)),
      group_tokens(room.Take<int64_t>(c.groups)),
      capacity_(c),
      block_(std::move(room.block)) {}

namespace {

template <class T>
void ForgetField(StepList<T>& list) {
  list.Clear();
}
template <class T>
void ForgetField(T& value) {
  value = {};
}

}  // namespace

void Step::Clear() {
  VisitFields(*this, [](auto& field) { ForgetField(field); });
}

void Step::KeepOnlyGroupTokens() {
  tokens.Clear(), positions.Clear(), slots.Clear(), sources.Clear(), keep.Clear();
  logit_rows.Clear(), logit_ends.Clear(), chunks.Clear(), pages.Clear(), copies.Clear();
  page = {};
  sends_page = 0;
}

void Step::AddChunk(const SequenceChunk& chunk, int64_t sparse_from) {
  const int64_t page_tokens = capacity_.page_tokens;
  const int64_t query_start = token_count();
  const int64_t first_page = pages.size();
  for (const int32_t page_id : chunk.pages) pages.Add(page_id);
  for (const int32_t token : chunk.tokens) tokens.Add(token);
  for (int64_t position = chunk.cached_len; position < chunk.total_len(); ++position) {
    positions.Add(static_cast<int32_t>(position));
    slots.Add(chunk.pages[static_cast<size_t>(position / page_tokens)] * page_tokens +
              position % page_tokens);
  }
  const int64_t dense = std::clamp<int64_t>(sparse_from - chunk.cached_len, 0, chunk.count);
  StepChunk part{.query_start = static_cast<int32_t>(query_start),
                 .count = static_cast<int32_t>(dense),
                 .cached_len = static_cast<int32_t>(chunk.cached_len),
                 .path = static_cast<int32_t>(chunk.path),
                 .first_page = static_cast<int32_t>(first_page),
                 .page_count = static_cast<int32_t>(chunk.pages.size())};
  if (dense == chunk.count) return chunks.Add(part);
  if (dense > 0) {
    part.page_count = static_cast<int32_t>(CeilDiv(chunk.cached_len + dense, page_tokens));
    chunks.Add(part);
  }
  part.query_start += static_cast<int32_t>(dense);
  part.cached_len += static_cast<int32_t>(dense);
  part.count = static_cast<int32_t>(chunk.count - dense);
  part.path = static_cast<int32_t>(MlaPath::kSparse);
  part.page_count = static_cast<int32_t>(chunk.pages.size());
  chunks.Add(part);
}

void Step::AddLogits(std::span<const int64_t> rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    logit_rows.Add(static_cast<int32_t>(rows[i]));
    if (i + 1 == rows.size() || (i + 1) % kLogitBlockRows == 0)
      logit_ends.Add(static_cast<int32_t>(logit_rows.size()));
  }
}

std::span<const int32_t> Step::LogitRows(int64_t i) const {
  const std::span<const int32_t> ends = logit_ends.values();
  const auto begin = static_cast<size_t>(i == 0 ? 0 : ends[static_cast<size_t>(i - 1)]);
  return logit_rows.values().subspan(begin,
                                     static_cast<size_t>(ends[static_cast<size_t>(i)]) - begin);
}

void Step::Chunks(std::span<const int32_t> all_pages, std::span<const StepChunk> placed,
                  std::vector<SequenceChunk>& out) const {
  out.clear();
  for (const StepChunk& c : chunks.values())
    out.push_back({.query_start = c.query_start,
                   .count = c.count,
                   .cached_len = c.cached_len,
                   .path = static_cast<MlaPath>(c.path),
                   .pages = all_pages.subspan(static_cast<size_t>(c.first_page),
                                              static_cast<size_t>(c.page_count)),
                   .placed = &placed[out.size()]});
}

std::span<const std::byte> Step::block() const {
  const std::byte* const begin = block_.Ptr<const std::byte>();
  const auto* const end = reinterpret_cast<const std::byte*>(pages.values().data() + pages.size());
  return {begin, end};
}

}  // namespace latte

// mla_decode over lists of positions, as sparse attention needs it. Keys that no list contains are
// NaN, and unreadable memory follows the lists.
#include <numeric>

#include <gtest/gtest.h>

#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/decode_grid.h"

namespace latte::mla_decode_list_test {
namespace {

using OpKernel = DecodeKernel;
using List = std::vector<int32_t>;

// [T, K] with −1 after each list.
struct Positions {
  Positions(const std::vector<List>& lists, int64_t k)
      : tensor(DType::kI32, {std::ssize(lists), k}) {  // poison is −1
    for (size_t t = 0; t < lists.size(); ++t)
      std::ranges::copy(lists[t], tensor.view().Row<int32_t>(static_cast<int64_t>(t)));
  }
  operator const TensorView&() const { return tensor; }
  Guarded tensor;
};

int64_t LongestOf(const std::vector<List>& lists) {
  size_t longest = 0;
  for (const List& list : lists) longest = std::max(longest, list.size());
  return static_cast<int64_t>(longest);
}

// For each token the list that make(own position, index of the token) returns.
template <class Make>
std::vector<List> ListsFor(const DecodeCase& c, const Make& make) {
  std::vector<List> out;
  for (const SequenceChunk& s : c.sequences)
    for (int64_t i = 0; i < s.count; ++i)
      out.push_back(make(s.cached_len + i, static_cast<int64_t>(out.size())));
  return out;
}

List AllUpTo(int64_t own) {
  List list(static_cast<size_t>(own + 1));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

// `count` positions up to `own`.
List Some(int64_t own, int64_t count, std::mt19937& rng) {
  List all = AllUpTo(own);
  List out;
  std::ranges::sample(all, std::back_inserter(out), count, rng);
  return out;  // sample keeps the order
}

// Empty, one, two, all without the own position, a block and its neighbours, a third of all, all.
std::vector<List> RaggedLists(const DecodeCase& c, std::mt19937& rng) {
  return ListsFor(c, [&](int64_t own, int64_t index) {
    switch (index % 8) {
      case 0:
        return Some(own, own / 3 + 1, rng);
      case 1:
        return List();
      case 2:
        return Some(own, 1, rng);
      case 3:
        return Some(own, 2, rng);
      case 4:
        return Some(own, 127 + index % 3, rng);
      case 5:
        return Some(own, 1023 + index % 3, rng);
      case 6:
        return AllUpTo(own - 1);
      default:
        return AllUpTo(own);
    }
  });
}

// NaN for the rows that no list of their sequence contains.
void PoisonOthers(const DecodeCase& c, const std::vector<List>& lists) {
  size_t token = 0;
  for (size_t i = 0; i < c.sequences.size(); ++i) {
    const SequenceChunk& s = c.sequences[i];
    std::vector<bool> listed(static_cast<size_t>(s.total_len()));
    for (int64_t end = s.count; end > 0; --end, ++token)
      for (const int32_t position : lists[token]) listed[static_cast<size_t>(position)] = true;
    for (size_t key = 0; key < listed.size(); ++key) {
      if (listed[key]) continue;
      const TensorView row = c.Row(i, static_cast<int64_t>(key));
      std::memset(row.data, 0xff, static_cast<size_t>(row.elements() * SizeOf(row.dtype)));
    }
  }
}

struct Outputs {
  Tensor o, lse;
};
Outputs RunInto(const OpKernel& kernel, MlaDecodeOp::Params p, int threads = 1) {
  const int64_t t = p.q_latent.shape[0];
  const int64_t h = p.q_latent.shape[1];
  Outputs out{Tensor(DType::kF32, {t, h, p.q_latent.shape[2]}), Tensor(DType::kF32, {t, h})};
  p.o_latent = out.o;
  p.lse = out.lse;
  RunKernel(kernel, p, threads);
  return out;
}

void ExpectSame(const DecodeCase& c, const Outputs& want, const std::string& how) {
  ASSERT_TRUE(SameBits(c.o, want.o)) << how;
  ASSERT_TRUE(SameBits(c.lse, want.lse)) << how << ", lse";
}

TEST(MlaDecodeLists, AllPositionsGiveTheBitsOfAttentionWithoutLists) {
  std::mt19937 rng(31);
  for (const DecodeShape& s : DecodeShapes()) {
    SCOPED_TRACE(Describe(s));
    DecodeCase c(s, rng);
    const std::vector<List> lists = ListsFor(c, [](int64_t own, int64_t) { return AllUpTo(own); });
    const Positions exact(lists, LongestOf(lists));
    const Positions wider(lists, LongestOf(lists) + 37);
    ForEachKernelFor<MlaDecodeOp>(MlaDecodeOp::ShapeOf(c.Params()), [&](const OpKernel& kernel) {
      c.positions = TensorView();
      const Outputs want = RunInto(kernel, c.Params());
      const bool reference = kernel.isa == Isa::kRef;
      for (const int threads : {1, 2, 3}) {
        c.positions = threads == 2 ? wider : exact;
        c.PoisonOutputs();
        RunKernel(kernel, c.Params(), threads);
        ExpectSame(c, want, fmt::format("{} threads", threads));
        if (reference) break;
      }
    });
    if (HasFatalFailure()) return;
  }
}

// The keys of each token as a sequence of its own, in new pages.
struct Compact {
  Compact(const DecodeCase& c, const DecodeShape& s, const std::vector<List>& lists)
      : page_tokens(RoundUp(std::max<int64_t>(LongestOf(lists), 1), 16)),
        pages(s.cache.dtype, {std::ssize(lists), page_tokens, s.cache.Width(s.c, s.r)}),
        ids(lists.size()) {
    std::iota(ids.begin(), ids.end(), 0);
    const int64_t row_bytes = pages.view().shape[2] * SizeOf(s.cache.dtype);
    size_t token = 0;
    for (size_t i = 0; i < c.sequences.size(); ++i)
      for (int64_t end = c.sequences[i].count; end > 0; --end, ++token) {
        std::byte* to = pages.view().RowBytes(static_cast<int64_t>(token));
        for (const int32_t position : lists[token]) {
          std::memcpy(to, c.Row(i, position).data, static_cast<size_t>(row_bytes));
          to += row_bytes;
        }
        const std::span<const int32_t> page(&ids[token], 1);
        if (lists[token].empty()) continue;
        sequences.push_back({.query_start = static_cast<int64_t>(token),
                             .count = 1,
                             .cached_len = std::ssize(lists[token]) - 1,
                             .pages = page});
      }
  }
  int64_t page_tokens;
  Guarded pages;
  std::vector<int32_t> ids;
  std::vector<SequenceChunk> sequences;  // of the tokens whose list is not empty
};

// Each token alone with copies of its rows gives the same bits.
void ExpectBitsOfCompact(const OpKernel& kernel, const DecodeCase& c, const Compact& compact) {
  std::vector<bool> seen(static_cast<size_t>(c.o.view().shape[0]));
  for (const SequenceChunk& s : compact.sequences) {
    const int64_t t = s.query_start;
    seen[static_cast<size_t>(t)] = true;
    MlaDecodeOp::Params p = c.Params();
    p.q_latent = p.q_latent.Slice(0, t, t + 1);
    p.q_rope = p.q_rope.Slice(0, t, t + 1);
    p.positions = TensorView();
    p.pages = compact.pages;
    p.sequences = {&s, 1};
    const Outputs want = RunInto(kernel, p);
    ASSERT_TRUE(SameBits(c.o.view().Slice(0, t, t + 1), want.o)) << "token " << t;
    ASSERT_TRUE(SameBits(c.lse.view().Slice(0, t, t + 1), want.lse)) << "token " << t;
  }
  for (size_t t = 0; t < seen.size(); ++t) {
    if (seen[t]) continue;
    const auto at = static_cast<int64_t>(t);
    for (int64_t h = 0; h < c.o.view().shape[1]; ++h) {
      EXPECT_EQ(GetValue(c.lse, at, h), -std::numeric_limits<float>::infinity());
      for (int64_t i = 0; i < c.o.view().shape[2]; ++i) ASSERT_EQ(GetValue(c.o, at, h, i), 0);
    }
  }
}

// Lists of all lengths, in sequences of more than two splits.
TEST(MlaDecodeLists, RaggedListsMatchTheReferenceAndSeparateSequences) {
  const Normals normals;
  std::mt19937 rng(32);
  size_t turn = 0;
  for (const int64_t heads : {2, 9, 40})
    for (const CacheDType cache : kGridCaches) {
      if (!IsRun(turn++, 0, 5)) continue;
      const DecodeShape s = {
          heads, 512, 64, 64, cache, 1 / std::sqrt(576.0f), {{9, 2500}, {1, 70}, {1, 1}, {6, 300}}};
      SCOPED_TRACE(Describe(s));
      DecodeCase c(s, rng, normals);
      const std::vector<List> lists = RaggedLists(c, rng);
      PoisonOthers(c, lists);
      const Positions positions(lists, LongestOf(lists));
      c.positions = positions;
      ExpectEveryRowWithinGrid(c, s, /*most=*/int64_t{1} << 30);
      const Compact compact(c, s, lists);
      ForEachKernelFor<MlaDecodeOp>(MlaDecodeOp::ShapeOf(c.Params()), [&](const OpKernel& kernel) {
        for (const int threads : {1, 3}) {
          c.PoisonOutputs();
          RunKernel(kernel, c.Params(), threads);
          ExpectBitsOfCompact(kernel, c, compact);
        }
      });
      if (HasFatalFailure()) return;
    }
}

// A chunk of one token at a time gives the bits of the whole.
TEST(MlaDecodeLists, ChunksDoNotMatter) {
  std::mt19937 rng(33);
  const DecodeShape s = {5, 64, 16, 16, CacheDType(), 0.2f, {{1, 40}, {7, 1100}}};
  DecodeCase c(s, rng);
  const std::vector<List> lists = RaggedLists(c, rng);
  const Positions positions(lists, LongestOf(lists));
  c.positions = positions;
  ForEachKernelFor<MlaDecodeOp>(MlaDecodeOp::ShapeOf(c.Params()), [&](const OpKernel& kernel) {
    const Outputs whole = RunInto(kernel, c.Params(), 2);
    for (const SequenceChunk& sequence : c.sequences)
      for (int64_t i = 0; i < sequence.count; ++i) {
        const int64_t t = sequence.query_start + i;
        SequenceChunk one = sequence;
        one.query_start = t;
        one.cached_len += i;
        one.count = 1;
        MlaDecodeOp::Params p = c.Params();
        for (TensorView* x : {&p.q_latent, &p.q_rope, &p.positions}) *x = x->Slice(0, t, t + 1);
        p.sequences = {&one, 1};
        const Outputs got = RunInto(kernel, p);
        ASSERT_TRUE(SameBits(got.o, whole.o.view().Slice(0, t, t + 1))) << "token " << t;
        ASSERT_TRUE(SameBits(got.lse, whole.lse.view().Slice(0, t, t + 1))) << "token " << t;
      }
  });
}

TEST(MlaDecodeListsDeathTest, OnlyAscendingPositionsUpToTheOwnAreLists) {
  std::mt19937 rng(34);
  const DecodeShape s = {2, 64, 16, 16, CacheDType(), 0.2f, {{1, 40}}};
  DecodeCase c(s, rng);
  const auto run = [&](const OpKernel& kernel, const List& entries) {
    const Positions positions({entries}, 4);
    c.positions = positions;
    RunKernel(kernel, c.Params());
  };
  ForEachKernelFor<MlaDecodeOp>(MlaDecodeOp::ShapeOf(c.Params()), [&](const OpKernel& kernel) {
    if (kernel.isa.family == IsaFamily::kCuda) return;  // the host sees no list
    run(kernel, {0, 5, 38, 39});
    EXPECT_DEATH(run(kernel, {5, 3}), "position 3 after 5 in the list of token 39");
    EXPECT_DEATH(run(kernel, {5, 5}), "position 5 after 5");
    EXPECT_DEATH(run(kernel, {5, 40}), "position 40 after 5");
    EXPECT_DEATH(run(kernel, {-2}), "position -2");
    EXPECT_DEATH(run(kernel, {5, -1, -1, 7}), "position 7 after the end of the list of token 39");
  });
}

}  // namespace
}  // namespace latte::mla_decode_list_test

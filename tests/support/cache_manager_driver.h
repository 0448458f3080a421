// Drives a CacheManager like an engine, with operations that bytes select. A hash of the tokens
// that a row depends on stands for the row and moves with the operations that the manager requests,
// so a page that is released, shared or saved wrongly is detected.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/cache/cache_manager.h"
#include "tests/support/byte_source.h"

namespace latte::testing_support {

class CacheManagerDriver {
 public:
  // The claim that did not hold; empty if all did.
  static std::string Run(std::span<const uint8_t> bytes) {
    CacheManagerDriver driver;
    ByteSource choose(bytes);
    while (!choose.empty() && driver.broken_.empty()) {
      driver.Step(choose);
      driver.CheckCounts();
      driver.CheckRows();
    }
    if (driver.broken_.empty()) driver.End();
    return driver.broken_;
  }

 private:
  static constexpr int64_t kPages = 9;
  static constexpr int64_t kPageTokens = 2;
  static constexpr size_t kMostTokens = 12;
  using Row = uint64_t;

  struct Sequence {
    PagePrefix text;
    std::vector<int32_t> pages;
  };

  void Require(bool holds, const char* claim) {
    if (!holds && broken_.empty()) broken_ = claim;
  }

  static Row RowAt(const PagePrefix& text, size_t position) {
    Row row = 14695981039346656037u + text.salt.size();
    for (size_t i = 0; i <= position; ++i)
      row = (row ^ static_cast<Row>(text.tokens[i] + 1)) * 1099511628211u;
    return row;
  }
  Row& At(int32_t page, size_t position) {
    return rows_[static_cast<size_t>(page)][position % kPageTokens];
  }
  static int32_t PageAt(const Sequence& sequence, size_t position) {
    return sequence.pages[position / kPageTokens];
  }

  void Step(ByteSource& choose) {
    const int32_t what = choose.Below(8);
    if (what == 0) return Admit(choose);
    if (what == 1) return Evict(choose);
    if (sequences_.empty()) return;
    const auto i = static_cast<size_t>(choose.Below(static_cast<int32_t>(sequences_.size())));
    Sequence& sequence = sequences_[i];
    switch (what) {
      case 2:
        return manager_.Insert(
            sequence.text.salt, sequence.text.tokens,
            std::span(sequence.pages).first(sequence.text.tokens.size() / kPageTokens));
      case 3:
        return Fork(i);
      case 4:
        return Rollback(sequence, choose);
      case 5:
        manager_.Release(sequence.pages);
        sequences_.erase(sequences_.begin() + static_cast<int64_t>(i));
        return;
      default:
        return Append(sequence, choose);
    }
  }

  void Admit(ByteSource& choose) {
    Sequence sequence{{std::string(static_cast<size_t>(choose.Below(2)), 's'), {}}, {}};
    const int32_t tokens = 1 + choose.Below(8);
    for (int32_t i = 0; i < tokens; ++i) sequence.text.tokens.push_back(choose.Below(2));
    const PagePrefix& text = sequence.text;
    const int64_t expected = manager_.MatchedPages(text.salt, text.tokens);
    sequence.pages = manager_.Match(text.salt, text.tokens);
    Require(std::ssize(sequence.pages) == expected, "MatchedPages");
    Require(expected * kPageTokens < tokens, "one token is left to compute");
    sequence.text.tokens.resize(sequence.pages.size() * kPageTokens);
    if (sequences_.size() < 5)
      sequences_.push_back(std::move(sequence));
    else
      manager_.Release(sequence.pages);
  }

  void Append(Sequence& sequence, ByteSource& choose) {
    const size_t from = sequence.text.tokens.size();
    const size_t to = std::min(kMostTokens, from + 1 + static_cast<size_t>(choose.Below(4)));
    if (from == to) return;
    if (from % kPageTokens != 0 &&
        !manager_.MakeWritable(sequence.pages, static_cast<int64_t>(from)))
      return Require(manager_.available_pages() == 0, "a copy fails for want of pages alone");
    const auto needed =
        static_cast<int64_t>((to + kPageTokens - 1) / kPageTokens) - std::ssize(sequence.pages);
    const bool fits = manager_.CanReserve(std::ssize(sequence.pages), needed);
    const bool done = manager_.Reserve(sequence.pages, static_cast<int64_t>(to)).has_value();
    Require(done == fits, "Reserve does what CanReserve says");
    CarryOut();
    if (!done) return;
    for (size_t i = from; i < to; ++i) {
      sequence.text.tokens.push_back(choose.Below(2));
      At(PageAt(sequence, i), i) = RowAt(sequence.text, i);
    }
  }

  void Fork(size_t i) {
    if (sequences_.size() >= 5) return;
    manager_.Share(sequences_[i].pages);
    sequences_.push_back(Sequence(sequences_[i]));
  }

  // Removes tokens, as after rejected drafts.
  void Rollback(Sequence& sequence, ByteSource& choose) {
    const size_t drop = static_cast<size_t>(choose.Below(4));
    auto& tokens = sequence.text.tokens;
    tokens.resize(tokens.size() - std::min(tokens.size(), drop));
    const size_t pages = (tokens.size() + kPageTokens - 1) / kPageTokens;
    while (sequence.pages.size() > pages) {
      manager_.Release(sequence.pages.back());
      sequence.pages.pop_back();
    }
  }

  void Evict(ByteSource& choose) {
    const int64_t count = choose.Below(4);
    if (count == 3)
      manager_.EvictAll();
    else
      Require(manager_.Evict(count) <= count, "Evict");
  }

  void CarryOut() {
    for (const PageOp& op : manager_.TakeOps()) {
      if (op.kind == PageOp::Kind::kCopy)
        rows_[static_cast<size_t>(op.to)] = rows_[static_cast<size_t>(op.from)];
      if (op.kind != PageOp::Kind::kSave) continue;
      const size_t end = op.prefix.tokens.size();
      for (size_t i = end - kPageTokens; i < end; ++i)
        Require(At(op.from, i) == RowAt(op.prefix, i), "the page that is saved has its rows");
    }
  }

  void CheckCounts() {
    std::set<int32_t> used;
    for (const Sequence& sequence : sequences_)
      used.insert(sequence.pages.begin(), sequence.pages.end());
    int64_t cached = 0;
    std::vector<PagePrefix> all, held;
    for (const int32_t page : manager_.TreePages()) {
      all.push_back(manager_.PrefixOf(page));
      if (used.contains(page))
        held.push_back(all.back());
      else
        ++cached;
    }
    const int64_t evictable = std::ranges::count_if(all, [&](const PagePrefix& prefix) {
      return std::ranges::none_of(held, [&](const PagePrefix& h) { return Extends(h, prefix); });
    });
    Require(manager_.used_pages() == std::ssize(used), "used_pages");
    Require(manager_.cached_pages() == cached, "cached_pages");
    Require(manager_.free_pages() == kPages - std::ssize(used) - cached, "free_pages");
    Require(manager_.available_pages() == manager_.free_pages() + evictable, "available_pages");
  }

  static bool Extends(const PagePrefix& longer, const PagePrefix& prefix) {
    return longer.salt == prefix.salt && longer.tokens.size() >= prefix.tokens.size() &&
           std::equal(prefix.tokens.begin(), prefix.tokens.end(), longer.tokens.begin());
  }

  // Checks that the rows match the tokens, after pending operations are done.
  void CheckRows() {
    CarryOut();
    for (const Sequence& sequence : sequences_)
      for (size_t i = 0; i < sequence.text.tokens.size(); ++i)
        Require(At(PageAt(sequence, i), i) == RowAt(sequence.text, i),
                "the rows of a sequence match its tokens");
  }

  void End() {
    for (Sequence& sequence : sequences_) manager_.Release(sequence.pages);
    sequences_.clear();
    Require(manager_.used_pages() == 0, "nothing is used at the end");
    Require(manager_.available_pages() == kPages, "all is available at the end");
    manager_.EvictAll();
    CarryOut();
    Require(manager_.free_pages() == kPages, "no page is lost");
  }

  CacheManager manager_{{.pages = kPages, .page_tokens = kPageTokens, .save_evicted = true}};
  std::vector<Sequence> sequences_;
  std::vector<std::vector<Row>> rows_ = std::vector(kPages, std::vector<Row>(kPageTokens, 0));
  std::string broken_;
};

}  // namespace latte::testing_support

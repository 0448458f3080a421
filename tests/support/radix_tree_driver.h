// Drives a RadixTree with operations that bytes select, and compares it with a list of prefixes
// that is searched linearly.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "src/cache/radix_tree.h"
#include "tests/support/byte_source.h"

namespace latte::testing_support {

class RadixTreeDriver {
 public:
  // The claim that did not hold; empty if all did. `hash_mask`: of RadixTree.
  static std::string Run(std::span<const uint8_t> bytes, uint64_t hash_mask = ~uint64_t{0}) {
    RadixTreeDriver driver(hash_mask);
    ByteSource choose(bytes);
    while (!choose.empty() && driver.broken_.empty()) {
      driver.Step(choose);
      driver.CompareCounts();
    }
    return driver.broken_;
  }

 private:
  explicit RadixTreeDriver(uint64_t hash_mask) : tree_(kPages, kPageTokens, hash_mask) {}

  static constexpr int32_t kPages = 12;
  static constexpr int64_t kPageTokens = 2;

  struct Known {
    PagePrefix prefix;
    int32_t page;
    bool used;
    int64_t last_use;
  };

  void Require(bool holds, const char* claim) {
    if (!holds && broken_.empty()) broken_ = claim;
  }

  // Few tokens and salts, so prompts have common prefixes.
  static PagePrefix Prompt(ByteSource& choose) {
    PagePrefix prompt{std::string(static_cast<size_t>(choose.Below(2)), 's'), {}};
    const int32_t tokens = choose.Below(10);
    for (int32_t i = 0; i < tokens; ++i) prompt.tokens.push_back(choose.Below(2));
    return prompt;
  }
  static PagePrefix Beginning(const PagePrefix& prompt, size_t pages) {
    const auto begin = prompt.tokens.begin();
    return {prompt.salt, {begin, begin + static_cast<int64_t>(pages) * kPageTokens}};
  }
  static bool Extends(const PagePrefix& longer, const PagePrefix& prefix) {
    return longer.salt == prefix.salt && longer.tokens.size() >= prefix.tokens.size() &&
           std::equal(prefix.tokens.begin(), prefix.tokens.end(), longer.tokens.begin());
  }
  Known* Find(const PagePrefix& prefix) {
    const auto it = std::ranges::find(known_, prefix, &Known::prefix);
    return it == known_.end() ? nullptr : &*it;
  }
  bool IsLeaf(const Known& known) const {
    return std::ranges::none_of(known_, [&](const Known& k) {
      return k.page != known.page && Extends(k.prefix, known.prefix);
    });
  }
  bool IsHeld(const Known& known) const {
    return std::ranges::any_of(
        known_, [&](const Known& k) { return k.used && Extends(k.prefix, known.prefix); });
  }
  int32_t FreePage(const std::vector<int32_t>& but) const {
    for (int32_t page = 0; page < kPages; ++page)
      if (!std::ranges::count(but, page) && !std::ranges::count(known_, page, &Known::page))
        return page;
    return -1;
  }

  void Step(ByteSource& choose) {
    switch (choose.Below(4)) {
      case 0:
        return Match(choose);
      case 1:
        return Insert(choose);
      case 2:
        return SetUsed(choose);
      default:
        return Evict();
    }
  }

  void Match(ByteSource& choose) {
    const PagePrefix prompt = Prompt(choose);
    const int64_t limit = choose.Below(6);
    std::vector<int32_t> expected;
    while (std::ssize(expected) < limit &&
           std::ssize(expected) * kPageTokens + kPageTokens <= std::ssize(prompt.tokens)) {
      const Known* known = Find(Beginning(prompt, expected.size() + 1));
      if (known == nullptr) break;
      expected.push_back(known->page);
    }
    Require(tree_.Match(prompt.salt, prompt.tokens, limit) == expected, "Match");
    Require(tree_.MatchedPages(prompt.salt, prompt.tokens, limit) == std::ssize(expected),
            "MatchedPages");
  }

  void Insert(ByteSource& choose) {
    const PagePrefix prompt = Prompt(choose);
    std::vector<int32_t> pages, taken;
    const size_t whole = prompt.tokens.size() / kPageTokens;
    std::vector<Known> added;
    while (pages.size() < whole) {
      const PagePrefix prefix = Beginning(prompt, pages.size() + 1);
      Known* known = Find(prefix);
      const bool own = known == nullptr || choose.Below(2) == 0;
      const int32_t page = own ? FreePage(pages) : known->page;
      if (page < 0) break;
      pages.push_back(page);
      if (known != nullptr) {
        known->last_use = ++clock_;
      } else {
        added.push_back({prefix, page, true, ++clock_});
        taken.push_back(page);
      }
    }
    known_.insert(known_.end(), added.begin(), added.end());
    Require(tree_.Insert(prompt.salt, prompt.tokens, pages) == taken, "Insert");
  }

  void SetUsed(ByteSource& choose) {
    if (known_.empty()) return;
    Known& known = known_[static_cast<size_t>(choose.Below(static_cast<int32_t>(known_.size())))];
    const bool used = choose.Below(3) == 0;
    if (known.used && !used) known.last_use = ++clock_;
    known.used = used;
    tree_.SetUsed(known.page, used);
  }

  void Evict() {
    const Known* oldest = nullptr;
    for (const Known& known : known_)
      if (!known.used && IsLeaf(known) && (oldest == nullptr || known.last_use < oldest->last_use))
        oldest = &known;
    const int32_t expected = oldest == nullptr ? -1 : oldest->page;
    Require(tree_.Oldest() == expected, "Oldest");
    if (oldest == nullptr || !broken_.empty()) return;
    Require(tree_.PrefixOf(expected) == oldest->prefix, "PrefixOf");
    tree_.Remove(expected);
    std::erase_if(known_, [&](const Known& known) { return known.page == expected; });
  }

  void CompareCounts() {
    Require(tree_.pages() == std::ssize(known_), "pages");
    Require(tree_.unused_pages() == std::ranges::count(known_, false, &Known::used),
            "unused_pages");
    Require(tree_.evictable_pages() ==
                std::ranges::count_if(known_, [&](const Known& k) { return !IsHeld(k); }),
            "evictable_pages");
    const auto of_salt = [&](const char* salt) {
      return std::ranges::any_of(known_, [&](const Known& k) { return k.prefix.salt == salt; });
    };
    Require(tree_.salts() == (of_salt("") ? 1 : 0) + (of_salt("s") ? 1 : 0), "salts");
  }

  RadixTree tree_;
  std::vector<Known> known_;
  int64_t clock_ = 0;
  std::string broken_;
};

}  // namespace latte::testing_support

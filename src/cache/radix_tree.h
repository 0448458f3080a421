// clang-format off
// The prefix tree: maps the beginnings of prompts to the pages with their cached rows. It has one
// node per page; prompts with different salts share nothing. The tree holds no references and frees
// nothing: the caller reports the pages in use, and the tree names the page to evict first.
//
//   salt "a" ── [1 2 3 4] page 7 ─┬─ [5 6 7 8] page 2
//                                 └─ [5 6 9 9] page 0      (page_tokens = 4)
//
// Children are found by a hash of the page's tokens, then all tokens are compared. No function
// recurses: a prompt may be millions of tokens long.
// clang-format on
#pragma once

#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/cache/page_prefix.h"

namespace latte {

// Thread-compatible. Page ids come from a pool of `pages` pages; a page is in the tree at most
// once.
class RadixTree {
 public:
  // `hash_mask`: the bits of hashes in use. Tests use few bits to force collisions. owners: of
  // pages (page_owners.h), which are counted apart.
  RadixTree(int64_t pages, int64_t page_tokens, uint64_t hash_mask = ~uint64_t{0},
            int64_t owners = 1);
  RadixTree(const RadixTree&) = delete;
  RadixTree& operator=(const RadixTree&) = delete;
  RadixTree(RadixTree&&) = default;
  RadixTree& operator=(RadixTree&&) = default;

  // The pages of the longest known beginning of `tokens` in whole pages, at most `max_pages`.
  std::vector<int32_t> Match(std::string_view salt, std::span<const int32_t> tokens,
                             int64_t max_pages) const;
  // The number of pages that Match would find.
  int64_t MatchedPages(std::string_view salt, std::span<const int32_t> tokens,
                       int64_t max_pages) const;

  // Adds pages: pages[i] holds rows of tokens [i·P, (i+1)·P). Returns the pages that were added; if
  // the tree has the same tokens already, it keeps its own page. An added page counts as used.
  std::vector<int32_t> Insert(std::string_view salt, std::span<const int32_t> tokens,
                              std::span<const int32_t> pages);

  // Sets whether a page of the tree has users. Its last use is the moment when its last user left.
  void SetUsed(int32_t page, bool used);

  // The page whose use ended longest ago among the pages without successor and user; −1 if there is
  // none. Constant cost.
  int32_t Oldest() const { return leaves_.empty() ? -1 : leaves_.begin()->second; }
  // Requires: the page is in the tree, has no successor and no user.
  void Remove(int32_t page);

  bool Contains(int32_t page) const { return nodes_[static_cast<size_t>(page)].in_tree; }
  PagePrefix PrefixOf(int32_t page) const;  // Requires: Contains(page). Cost: length of the prefix

  int64_t pages() const { return pages_; }
  int64_t unused_pages() const { return unused_; }  // no user
  // Neither the page nor a successor has a user.
  int64_t evictable_pages() const {
    return std::accumulate(evictable_.begin(), evictable_.end(), int64_t{0});
  }
  int64_t evictable_pages(int64_t owner) const { return evictable_[static_cast<size_t>(owner)]; }
  int64_t salts() const { return static_cast<int64_t>(salts_.size()); }

 private:
  using Salts = std::map<std::string, int64_t, std::less<>>;  // pages of each salt

  struct Node {
    bool in_tree = false;
    bool used = false;    // by users other than the tree
    int32_t parent = -1;  // parent page; −1: the first page of a prompt
    int32_t children = 0;
    int32_t held = 0;   // children that are held or used below, and 1 if the page itself is used
    uint64_t hash = 0;  // of parent and tokens
    uint64_t last_use = 0;
    Salts::iterator salt = {};
    std::vector<int32_t> tokens = {};  // the page's own
  };

  int64_t& Evictable(int32_t page) {
    return evictable_[static_cast<size_t>(page) % evictable_.size()];
  }
  Node& At(int32_t page) { return nodes_[static_cast<size_t>(page)]; }
  const Node& At(int32_t page) const { return nodes_[static_cast<size_t>(page)]; }
  std::span<const int32_t> PageOf(std::span<const int32_t> tokens, int64_t i) const;
  // The page after `parent` with these tokens, or −1. Requires: salt is not salts_.end().
  int32_t Child(Salts::const_iterator salt, int32_t parent, std::span<const int32_t> tokens) const;
  uint64_t HashOf(Salts::const_iterator salt, int32_t parent,
                  std::span<const int32_t> tokens) const;
  void Add(Salts::iterator salt, int32_t parent, std::span<const int32_t> tokens, int32_t page);
  void Touch(int32_t page);
  void Hold(int32_t page);
  void Unhold(int32_t page);

  int64_t page_tokens_;
  uint64_t hash_mask_;
  std::vector<Node> nodes_;  // by page id
  Salts salts_;              // salts that have pages
  std::unordered_multimap<uint64_t, int32_t> by_hash_;
  std::set<std::pair<uint64_t, int32_t>> leaves_;  // (last use, page): no successor, no user
  uint64_t clock_ = 0;                             // counts ends of use
  int64_t pages_ = 0;
  int64_t unused_ = 0;
  std::vector<int64_t> evictable_;  // by owner
};

}  // namespace latte

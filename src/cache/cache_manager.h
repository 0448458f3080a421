// Which page holds what: pages in use by sequences, pages kept because a later prompt may begin
// with their tokens, free pages. One reference per user of a page; the prefix tree is one of them.
// Moves no bytes: what must be copied, loaded or saved comes out of TakeOps, for the step to carry
// out before it computes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/cache/page_pool.h"
#include "src/cache/page_prefix.h"
#include "src/cache/radix_tree.h"

namespace latte {

// Bytes to move, for all streams and layers of a page.
struct PageOp {
  enum class Kind { kCopy, kSave };
  Kind kind = Kind::kCopy;
  int32_t from = -1;  // page that is read: kCopy, kSave
  int32_t to = -1;    // page that is written: kCopy
  PagePrefix prefix;  // kSave
};

struct CacheManagerOptions {
  int64_t pages = 0;
  int64_t page_tokens = 64;
  bool prefix_cache = true;
  bool save_evicted = false;  // pages that leave the tree are saved first
};

// Engine-thread only.
class CacheManager {
 public:
  explicit CacheManager(const CacheManagerOptions& options);

  // The longest known beginning of `tokens`, in whole pages, and never all of them: one token is
  // left to compute. The caller gets one reference to each page. Tokens are compared, not hashes.
  std::vector<int32_t> Match(std::string_view salt, std::span<const int32_t> tokens);

  // How many pages Match would find; changes nothing.
  int64_t MatchedPages(std::string_view salt, std::span<const int32_t> tokens) const;

  // Appends pages until `pages` has room for `total_tokens`; prefixes that nobody uses are evicted,
  // least recently used first. Errors: kExhausted, and then nothing has changed.
  [[nodiscard]] Status Reserve(std::vector<int32_t>& pages, int64_t total_tokens);

  // Whether Reserve of `count` more pages would succeed.
  bool CanReserve(int64_t count) const { return count <= available_pages(); }

  // Before rows at `position` are written: if others use that page too, puts a copy in its place
  // (copy-on-write). Errors: as Reserve.
  [[nodiscard]] Status MakeWritable(std::vector<int32_t>& pages, int64_t position);

  // One more user of the same pages.
  void Share(std::span<const int32_t> pages);

  // Gives up one reference to each page and clears `pages`.
  void Release(std::vector<int32_t>& pages);
  void Release(int32_t page);

  // Makes whole pages findable: pages[i] holds rows of tokens [i·P, (i+1)·P). Where the tree has
  // those tokens already, its own pages stay. Requires: every page has a user, and is in the tree
  // under no other tokens.
  void Insert(std::string_view salt, std::span<const int32_t> tokens,
              std::span<const int32_t> pages);

  // Forgets up to `count` pages that nobody uses, least recently used first; under save_evicted
  // they are saved. Returns how many. A save carries all tokens of its prefix, so that whoever
  // empties a large cache takes and carries out the operations every few hundred pages.
  int64_t Evict(int64_t count);

  // Forgets every prefix that nobody uses; under save_evicted they are saved.
  void EvictAll();

  // Pages that the tree holds, in use or not, and what one of them depends on: for saving them
  // without forgetting them.
  std::vector<int32_t> TreePages() const;
  PagePrefix PrefixOf(int32_t page) const { return tree_.PrefixOf(page); }

  // What must be done before the next step computes, in order: a page that an operation reads was
  // written by an earlier step and is not written in this one before it was read.
  std::vector<PageOp> TakeOps();

  bool keeps_prefixes() const { return options_.prefix_cache; }
  int64_t page_tokens() const { return options_.page_tokens; }
  int64_t total_pages() const { return pool_.total_pages(); }
  int64_t free_pages() const { return pool_.free_pages(); }
  int64_t cached_pages() const;     // held by the tree alone
  int64_t available_pages() const;  // free, or cached and evictable
  int64_t used_pages() const { return total_pages() - free_pages() - cached_pages(); }

 private:
  // How many pages of known tokens a prompt may begin with.
  int64_t MostPages(std::span<const int32_t> tokens) const;
  // Evicts until `count` pages are free. Errors: kExhausted, and then nothing was evicted.
  Status MakeRoom(int64_t count);

  CacheManagerOptions options_;
  PagePool pool_;
  RadixTree tree_;
  std::vector<PageOp> ops_;
};

}  // namespace latte

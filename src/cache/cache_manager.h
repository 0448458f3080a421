// Manages the pages: pages in use by sequences, pages kept because a later prompt may begin
// with their tokens, and free pages. Every user of a page holds one reference; the prefix tree is
// one of the users. The manager moves no bytes: TakeOps returns the copies, loads and saves that
// the engine must carry out before the next step computes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/cache/page_owners.h"
#include "src/cache/page_pool.h"
#include "src/cache/page_prefix.h"
#include "src/cache/radix_tree.h"

namespace latte {

// A copy, load or save of a page, over all streams and layers.
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
  int64_t owners = 1;         // ranks that divide the pages (page_owners.h); divides `pages`
  bool lent = false;          // all pages are lent by other managers
};

// Engine-thread only.
class CacheManager {
 public:
  explicit CacheManager(const CacheManagerOptions& options);

  // The longest known beginning of `tokens`, in whole pages but never all of `tokens`: at least one
  // token is left to compute. The caller gets one reference to each page. Tokens are compared, not
  // only hashes.
  std::vector<int32_t> Match(std::string_view salt, std::span<const int32_t> tokens);

  // The number of pages that Match would find. Changes nothing.
  int64_t MatchedPages(std::string_view salt, std::span<const int32_t> tokens) const;

  // Appends pages until `pages` has room for `total_tokens`, each of the owner of its place. Evicts
  // unused prefixes, least recently used first. Errors: kExhausted, and then nothing has changed.
  [[nodiscard]] Status Reserve(std::vector<int32_t>& pages, int64_t total_tokens);

  // Whether Reserve of `count` more pages for a sequence with `held` pages would succeed, and leave
  // `others` available pages of every owner.
  bool CanReserve(int64_t held, int64_t count, int64_t others = 0) const;

  // Pages of an owner that are free, or cached and evictable; and those that a sequence with `held`
  // pages needs of it for `count` more.
  int64_t available_pages(int64_t owner) const;
  int64_t NeedOf(int64_t owner, int64_t held, int64_t count) const;

  // Whether a sequence of so many tokens fits, if it is alone.
  bool Holds(int64_t tokens) const;

  // Call before rows at `position` are written: if the page has other users, replaces it by a copy
  // (copy-on-write). Errors: as Reserve.
  [[nodiscard]] Status MakeWritable(std::vector<int32_t>& pages, int64_t position);

  // The same, but a page that only its sequence and the tree use is left as it is: for rows that no
  // prompt reads before they are written.
  [[nodiscard]] Status MakeOwn(std::vector<int32_t>& pages, int64_t position);

  // Adds a reference to each page.
  void Share(std::span<const int32_t> pages);

  // Drops one reference to each page and clears `pages`.
  void Release(std::vector<int32_t>& pages);
  void Release(int32_t page);

  // Makes whole pages findable: pages[i] holds rows of tokens [i·P, (i+1)·P). If the tree has the
  // same tokens already, it keeps its own page. Requires: every page has a user, and is not in the
  // tree under other tokens.
  void Insert(std::string_view salt, std::span<const int32_t> tokens,
              std::span<const int32_t> pages);

  // Evicts up to `count` unused pages, least recently used first; under save_evicted they are
  // saved. Returns the number. A save operation carries all tokens of its prefix, so a caller that
  // empties a large cache should take and run the operations every few hundred pages.
  int64_t Evict(int64_t count);

  // Evicts every unused prefix; under save_evicted they are saved.
  void EvictAll();

  // A manager with one owner lends pages to one that has none. Lend: up to `count` pages, free ones
  // and pages of unused prefixes, but for `keep` of them; they count as used until TakeBack. While
  // fewer than `count` could be lent, CanReserve leaves the others alone, so pages that become free
  // are there for the next call.
  std::vector<int32_t> Lend(int64_t count, int64_t keep = 0);
  void TakeBack(std::span<const int32_t> pages);

  // The other side: pages of an owner by their places there. GiveBack: up to `count` of them, free
  // ones and pages of unused prefixes. borrowed: that the owner has lent.
  void Borrow(int64_t owner, std::span<const int32_t> places);
  std::vector<int32_t> GiveBack(int64_t owner, int64_t count);
  int64_t borrowed(int64_t owner) const { return borrowed_[static_cast<size_t>(owner)]; }

  // The pages in the tree, used or not, and what a page depends on: for saving pages without
  // evicting them.
  std::vector<int32_t> TreePages() const;
  // Under save_evicted: the pages that came into the tree since the last call. Some may have left
  // it again.
  std::vector<int32_t> TakeNewPages();
  bool IsInTree(int32_t page) const { return tree_.Contains(page); }
  PagePrefix PrefixOf(int32_t page) const { return tree_.PrefixOf(page); }

  // The operations to run, in order, before the next step computes. A page that an operation reads
  // was written by an earlier step, and this step does not write it before it has been read.
  std::vector<PageOp> TakeOps();

  bool keeps_prefixes() const { return options_.prefix_cache; }
  int64_t page_tokens() const { return options_.page_tokens; }
  int64_t total_pages() const { return pool_.total_pages(); }
  int64_t free_pages() const { return pool_.free_pages(); }
  int64_t cached_pages() const;     // held by the tree alone
  int64_t available_pages() const;  // free, or cached and evictable
  int64_t used_pages() const { return pool_.present_pages() - free_pages() - cached_pages(); }

 private:
  // The maximum number of pages with known tokens that a prompt may begin with.
  int64_t MostPages(std::span<const int32_t> tokens) const;
  // Replaces a page by a copy. Errors: as Reserve.
  Status CopyPage(int32_t& page);
  // Evicts until the pages that an owner needs are free, for all owners. needs(owner). Errors:
  // kExhausted, and then nothing was evicted.
  template <class Needs>
  Status MakeRoom(const Needs& needs);

  CacheManagerOptions options_;
  PageOwners owners_;
  PagePool pool_;
  RadixTree tree_;
  std::vector<int32_t> new_pages_;  // TakeNewPages
  std::vector<PageOp> ops_;
  int64_t claimed_ = 0;            // pages that are to be lent and are not free yet
  std::vector<int64_t> borrowed_;  // by owner
};

}  // namespace latte

#include "src/cache/cache_manager.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "src/base/check.h"
#include "src/base/math.h"

namespace latte {

CacheManager::CacheManager(const CacheManagerOptions& options)
    : options_(options),
      owners_{options.owners, options.page_tokens},
      pool_(options.pages, options.owners, options.lent),
      tree_(options.pages, options.page_tokens, ~uint64_t{0}, options.owners),
      borrowed_(static_cast<size_t>(options.owners), 0) {
  LATTE_CHECK(options.pages % options.owners == 0, "{} pages of {} owners", options.pages,
              options.owners);
}

int64_t CacheManager::cached_pages() const { return tree_.unused_pages(); }

int64_t CacheManager::available_pages() const { return free_pages() + tree_.evictable_pages(); }

int64_t CacheManager::available_pages(int64_t owner) const {
  return pool_.free_pages(owner) + tree_.evictable_pages(owner);
}

int64_t CacheManager::NeedOf(int64_t owner, int64_t held, int64_t count) const {
  return owners_.PagesOf(owner, held + count) - owners_.PagesOf(owner, held);
}

bool CacheManager::CanReserve(int64_t held, int64_t count, int64_t others) const {
  for (int64_t owner = 0; owner < owners_.count; ++owner)
    if (NeedOf(owner, held, std::max<int64_t>(count, 0)) + others + claimed_ >
        available_pages(owner))
      return false;
  return true;
}

bool CacheManager::Holds(int64_t tokens) const {
  return CeilDiv(tokens, options_.page_tokens) <= owners_.MostPages(total_pages() / owners_.count);
}

// One token is left to compute: its logits are what the caller is after.
int64_t CacheManager::MostPages(std::span<const int32_t> tokens) const {
  if (tokens.empty()) return 0;
  return (std::ssize(tokens) - 1) / options_.page_tokens;
}

std::vector<int32_t> CacheManager::Match(std::string_view salt, std::span<const int32_t> tokens) {
  std::vector<int32_t> pages = tree_.Match(salt, tokens, MostPages(tokens));
  Share(pages);
  return pages;
}

int64_t CacheManager::MatchedPages(std::string_view salt, std::span<const int32_t> tokens) const {
  return tree_.MatchedPages(salt, tokens, MostPages(tokens));
}

Status CacheManager::Reserve(std::vector<int32_t>& pages, int64_t total_tokens) {
  const int64_t held = std::ssize(pages);
  const int64_t count = std::max<int64_t>(CeilDiv(total_tokens, options_.page_tokens) - held, 0);
  LATTE_RETURN_IF_ERROR(MakeRoom([&](int64_t owner) { return NeedOf(owner, held, count); }));
  for (int64_t i = held; i < held + count; ++i)
    pages.push_back(*pool_.Allocate(owners_.OwnerAt(i)));
  return {};
}

Status CacheManager::MakeWritable(std::vector<int32_t>& pages, int64_t position) {
  int32_t& page = pages[static_cast<size_t>(position / options_.page_tokens)];
  return pool_.Refs(page) == 1 ? Status() : CopyPage(page);
}

Status CacheManager::MakeOwn(std::vector<int32_t>& pages, int64_t position) {
  int32_t& page = pages[static_cast<size_t>(position / options_.page_tokens)];
  const int in_tree = tree_.Contains(page) ? 1 : 0;
  return pool_.Refs(page) == 1 + in_tree ? Status() : CopyPage(page);
}

Status CacheManager::CopyPage(int32_t& page) {
  const int64_t owner = owners_.OwnerOf(page);
  LATTE_RETURN_IF_ERROR(MakeRoom([&](int64_t other) { return other == owner ? 1 : 0; }));
  const int32_t copy = *pool_.Allocate(owner);
  ops_.push_back({.kind = PageOp::Kind::kCopy, .from = page, .to = copy, .prefix = {}});
  Release(std::exchange(page, copy));
  return {};
}

template <class Needs>
Status CacheManager::MakeRoom(const Needs& needs) {
  for (int64_t owner = 0; owner < owners_.count; ++owner)
    if (needs(owner) > available_pages(owner))
      return Exhausted(fmt::format(
          "the cache{} has room for {} more pages of {} tokens, {} are needed, {} are in use; make "
          "it larger or run fewer tokens at once",
          owners_.count == 1 ? "" : fmt::format(" of part {}", owner), available_pages(owner),
          options_.page_tokens, needs(owner), used_pages()));
  // Leaves of the tree leave it first, whatever their owner.
  for (int64_t owner = 0; owner < owners_.count; ++owner)
    while (needs(owner) > pool_.free_pages(owner)) Evict(1);
  return {};
}

int64_t CacheManager::Evict(int64_t count) {
  int64_t evicted = 0;
  for (; evicted < count && tree_.Oldest() >= 0; ++evicted) {
    const int32_t page = tree_.Oldest();
    if (options_.save_evicted)
      ops_.push_back(
          {.kind = PageOp::Kind::kSave, .from = page, .to = -1, .prefix = tree_.PrefixOf(page)});
    tree_.Remove(page);
    pool_.Release(page);
  }
  return evicted;
}

std::vector<int32_t> CacheManager::Lend(int64_t count, int64_t keep) {
  LATTE_CHECK(owners_.count == 1, "{} owners lend pages", owners_.count);
  const int64_t now = std::clamp<int64_t>(available_pages() - keep, 0, count);
  Evict(std::max<int64_t>(now - free_pages(), 0));
  std::vector<int32_t> out;
  while (std::ssize(out) < now) out.push_back(*pool_.Allocate());
  claimed_ = count - now;
  return out;
}

void CacheManager::TakeBack(std::span<const int32_t> pages) {
  for (const int32_t page : pages) Release(page);
}

void CacheManager::Borrow(int64_t owner, std::span<const int32_t> places) {
  for (const int32_t place : places) pool_.Add(owners_.IdOf(owner, place));
  borrowed_[static_cast<size_t>(owner)] += std::ssize(places);
}

std::vector<int32_t> CacheManager::GiveBack(int64_t owner, int64_t count) {
  std::vector<int32_t> out;
  while (std::ssize(out) < count && available_pages(owner) > 0) {
    // Leaves of the tree leave it first, whatever their owner.
    while (pool_.free_pages(owner) == 0) Evict(1);
    out.push_back(owners_.PlaceOf(pool_.Remove(owner)));
  }
  borrowed_[static_cast<size_t>(owner)] -= std::ssize(out);
  return out;
}

void CacheManager::EvictAll() { Evict(std::numeric_limits<int64_t>::max()); }

void CacheManager::Share(std::span<const int32_t> pages) {
  for (const int32_t page : pages) {
    pool_.AddRef(page);
    if (tree_.Contains(page)) tree_.SetUsed(page, true);
  }
}

void CacheManager::Release(std::vector<int32_t>& pages) {
  for (const int32_t page : pages) Release(page);
  pages.clear();
}

void CacheManager::Release(int32_t page) {
  pool_.Release(page);
  if (pool_.Refs(page) == 1 && tree_.Contains(page)) tree_.SetUsed(page, false);
  LATTE_CHECK(pool_.Refs(page) > 0 || !tree_.Contains(page), "page {} was released too often",
              page);
}

void CacheManager::Insert(std::string_view salt, std::span<const int32_t> tokens,
                          std::span<const int32_t> pages) {
  if (!options_.prefix_cache) return;
  for (const int32_t page : tree_.Insert(salt, tokens, pages)) {
    pool_.AddRef(page);
    if (options_.save_evicted) new_pages_.push_back(page);
  }
}

std::vector<int32_t> CacheManager::TakeNewPages() { return std::exchange(new_pages_, {}); }

std::vector<int32_t> CacheManager::TreePages() const {
  std::vector<int32_t> pages;
  for (int32_t page = 0; page < total_pages(); ++page)
    if (tree_.Contains(page)) pages.push_back(page);
  return pages;
}

std::vector<PageOp> CacheManager::TakeOps() { return std::exchange(ops_, {}); }

}  // namespace latte

#include "src/cache/cache_manager.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "src/base/check.h"
#include "src/base/math.h"

namespace latte {

CacheManager::CacheManager(const CacheManagerOptions& options)
    : options_(options), pool_(options.pages), tree_(options.pages, options.page_tokens) {}

int64_t CacheManager::cached_pages() const { return tree_.unused_pages(); }

int64_t CacheManager::available_pages() const { return free_pages() + tree_.evictable_pages(); }

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
  const int64_t count = CeilDiv(total_tokens, options_.page_tokens) - std::ssize(pages);
  LATTE_RETURN_IF_ERROR(MakeRoom(count));
  for (int64_t i = 0; i < count; ++i) pages.push_back(*pool_.Allocate());
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
  LATTE_RETURN_IF_ERROR(MakeRoom(1));
  const int32_t copy = *pool_.Allocate();
  ops_.push_back({.kind = PageOp::Kind::kCopy, .from = page, .to = copy, .prefix = {}});
  Release(std::exchange(page, copy));
  return {};
}

Status CacheManager::MakeRoom(int64_t count) {
  if (count > available_pages())
    return Exhausted(fmt::format(
        "the cache has room for {} more pages of {} tokens, {} are needed, {} are in use; make it "
        "larger or run fewer tokens at once",
        available_pages(), options_.page_tokens, count, used_pages()));
  Evict(count - free_pages());
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

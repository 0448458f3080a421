// Reference counts and the free pages of each owner (page_owners.h). A page id indexes every stream
// and layer of the cache at once.
#pragma once

#include <cstdint>
#include <vector>

#include "latte/status.h"

#include "src/base/check.h"

namespace latte {

// A fixed set of pages with reference counts: page id belongs to owner id mod `owners`.
// Engine-thread only.
class PagePool {
 public:
  // lent: there are no pages until they are added.
  explicit PagePool(int64_t pages, int64_t owners = 1, bool lent = false)
      : free_(static_cast<size_t>(owners)), refs_(static_cast<size_t>(pages), 0) {
    if (lent) return;
    for (int64_t id = pages - 1; id >= 0; --id) Add(static_cast<int32_t>(id));
  }

  // A page that is lent, and one that is given back. Requires: it is not in the pool; it is free.
  void Add(int32_t id) {
    FreeOf(id).push_back(id);
    ++present_;
  }
  int32_t Remove(int64_t owner) {
    const int32_t id = FreeOf(owner).back();
    FreeOf(owner).pop_back();
    --present_;
    return id;
  }

  // A page of an owner with one reference. Errors: kExhausted.
  [[nodiscard]] Result<int32_t> Allocate(int64_t owner = 0) {
    std::vector<int32_t>& free = FreeOf(owner);
    if (free.empty())
      return Exhausted("the cache has no free page; make it larger or run fewer tokens at once");
    const int32_t id = free.back();
    free.pop_back();
    refs_[static_cast<size_t>(id)] = 1;
    return id;
  }
  void AddRef(int32_t id) {
    LATTE_CHECK(refs_[static_cast<size_t>(id)] > 0, "page {} is free", id);
    ++refs_[static_cast<size_t>(id)];
  }
  void Release(int32_t id) {
    LATTE_CHECK(refs_[static_cast<size_t>(id)] > 0, "page {} is free", id);
    if (--refs_[static_cast<size_t>(id)] == 0) FreeOf(id).push_back(id);
  }

  int32_t Refs(int32_t id) const { return refs_[static_cast<size_t>(id)]; }

  int64_t free_pages(int64_t owner) const { return std::ssize(free_[static_cast<size_t>(owner)]); }
  int64_t free_pages() const {
    int64_t pages = 0;
    for (const std::vector<int32_t>& free : free_) pages += std::ssize(free);
    return pages;
  }
  int64_t total_pages() const { return static_cast<int64_t>(refs_.size()); }
  int64_t present_pages() const { return present_; }  // total_pages(), unless pages are lent

 private:
  std::vector<int32_t>& FreeOf(int64_t id) { return free_[static_cast<size_t>(id) % free_.size()]; }

  // By owner. Last in, first out: the page used last is the likeliest to be in a CPU cache.
  std::vector<std::vector<int32_t>> free_;
  std::vector<int32_t> refs_;
  int64_t present_ = 0;
};

}  // namespace latte

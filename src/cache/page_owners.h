// The rank and the place of each page, if several ranks divide a cache (src/tensor/key_owner.h). A
// page id is global: owner id mod D holds page `id` at place id / D. The i-th pages of all
// sequences belong to one owner, so sharing a prefix and copying a page stay within one rank.
#pragma once

#include <cstdint>

#include "src/tensor/key_owner.h"

namespace latte {

struct PageOwners {
  int64_t count = 1;  // D
  int64_t page_tokens = 64;

  int64_t OwnerOf(int32_t id) const { return id % count; }
  int32_t PlaceOf(int32_t id) const { return static_cast<int32_t>(id / count); }
  int32_t IdOf(int64_t owner, int64_t place) const {
    return static_cast<int32_t>(place * count + owner);
  }

  // The owner of the i-th page of a sequence.
  int64_t OwnerAt(int64_t i) const { return i * page_tokens / kSplitKeys % count; }
  // How many of the first `pages` pages of a sequence an owner has; owner 0 has the most.
  int64_t PagesOf(int64_t owner, int64_t pages) const {
    return KeyOwner{owner, count}.KeysOf(pages * page_tokens) / page_tokens;
  }
  // The pages of the longest sequence for which `each` pages of every owner suffice.
  int64_t MostPages(int64_t each) const {
    const int64_t of_split = kSplitKeys / page_tokens;
    return count == 1 ? each : each / of_split * of_split * count + each % of_split;
  }
};

}  // namespace latte

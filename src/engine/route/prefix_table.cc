#include "src/engine/route/prefix_table.h"

#include <algorithm>
#include <new>
#include <ranges>

#include <xxhash.h>

namespace latte {

PageHashes::PageHashes(std::string_view salt, int64_t page_tokens)
    : page_tokens_(page_tokens), last_(XXH3_64bits(salt.data(), salt.size())) {}

void PageHashes::Append(std::span<const int32_t> tokens) {
  while (page_tokens_ > 0 && !tokens.empty()) {
    const size_t room = static_cast<size_t>(page_tokens_) - rest_.size();
    const auto part = tokens.first(std::min(room, tokens.size()));
    rest_.insert(rest_.end(), part.begin(), part.end());
    tokens = tokens.subspan(part.size());
    if (std::ssize(rest_) < page_tokens_) return;
    last_ = XXH3_64bits_withSeed(rest_.data(), rest_.size() * sizeof(int32_t), last_);
    hashes_.push_back(last_);
    rest_.clear();
  }
}

int64_t PrefixTable::Known(std::span<const uint64_t> pages) const {
  return std::ranges::find_if(pages, [&](uint64_t page) { return !places_.contains(page); }) -
         pages.begin();
}

void PrefixTable::Use(std::span<const uint64_t> pages) try {
  for (const uint64_t page : pages | std::views::reverse) {
    Forget({&page, 1});
    by_use_.push_front(page);
    places_.emplace(page, by_use_.begin());
    if (std::ssize(by_use_) <= most_) continue;
    places_.erase(by_use_.back());
    by_use_.pop_back();
  }
} catch (const std::bad_alloc&) {
}

void PrefixTable::Forget(std::span<const uint64_t> pages) {
  for (const uint64_t page : pages) {
    const auto place = places_.find(page);
    if (place == places_.end()) continue;
    by_use_.erase(place->second);
    places_.erase(place);
  }
}

}  // namespace latte

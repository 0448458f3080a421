// Rank 0's estimate of the prefixes in the cache of a group of ranks, from the requests that it
// assigned to the group. It holds only hashes, neither tokens nor rows. A wrong entry costs time,
// but changes no answer.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace latte {

// One hash per whole page of a text: of all its tokens up to the end of that page, and of its salt.
// Texts with different salts have no hash in common.
class PageHashes {
 public:
  PageHashes() = default;  // of a text without pages
  PageHashes(std::string_view salt, int64_t page_tokens);

  void Append(std::span<const int32_t> tokens);
  std::span<const uint64_t> all() const { return hashes_; }

 private:
  int64_t page_tokens_ = 0;
  uint64_t last_ = 0;
  std::vector<int32_t> rest_;  // tokens after the last whole page
  std::vector<uint64_t> hashes_;
};

// The pages of one group. Pages beyond `most` leave in the order of their last use, as in the
// group's cache.
class PrefixTable {
 public:
  explicit PrefixTable(int64_t most) : most_(most) {}

  // How many of a text's pages are known, from the first on.
  int64_t Known(std::span<const uint64_t> pages) const;
  // The group has these pages of a text, or will compute them. Earlier pages leave after later
  // ones. Pages for which there is no memory stay unknown.
  void Use(std::span<const uint64_t> pages);
  void Forget(std::span<const uint64_t> pages);

  int64_t size() const { return std::ssize(places_); }

 private:
  int64_t most_;
  std::list<uint64_t> by_use_;  // the latest first
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> places_;
};

}  // namespace latte

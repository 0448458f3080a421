#include "src/cache/radix_tree.h"

#include <algorithm>

#include <xxhash.h>

#include "src/base/check.h"

namespace latte {
RadixTree::RadixTree(int64_t pages, int64_t page_tokens, uint64_t hash_mask, int64_t owners)
    : page_tokens_(page_tokens),
      hash_mask_(hash_mask),
      nodes_(static_cast<size_t>(pages)),
      evictable_(static_cast<size_t>(owners)) {}

uint64_t RadixTree::HashOf(Salts::const_iterator salt, int32_t parent,
                           std::span<const int32_t> tokens) const {
  // Pages of all salts share one table: those that begin a prompt differ by their salt alone.
  const uint64_t seed = parent < 0 ? XXH3_64bits(salt->first.data(), salt->first.size())
                                   : static_cast<uint64_t>(parent) * 0x9e3779b97f4a7c15u;
  return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), seed) & hash_mask_;
}

std::span<const int32_t> RadixTree::PageOf(std::span<const int32_t> tokens, int64_t i) const {
  return tokens.subspan(static_cast<size_t>(i * page_tokens_), static_cast<size_t>(page_tokens_));
}

int32_t RadixTree::Child(Salts::const_iterator salt, int32_t parent,
                         std::span<const int32_t> tokens) const {
  const auto [begin, end] = by_hash_.equal_range(HashOf(salt, parent, tokens));
  for (auto it = begin; it != end; ++it) {
    const Node& node = At(it->second);
    if (node.parent == parent && node.salt == salt && std::ranges::equal(node.tokens, tokens))
      return it->second;
  }
  return -1;
}

std::vector<int32_t> RadixTree::Match(std::string_view salt, std::span<const int32_t> tokens,
                                      int64_t max_pages) const {
  std::vector<int32_t> found;
  const auto owner = salts_.find(salt);
  if (owner == salts_.end()) return found;
  const int64_t limit = std::min(max_pages, std::ssize(tokens) / page_tokens_);
  for (int32_t page = -1; std::ssize(found) < limit;) {
    page = Child(owner, page, PageOf(tokens, std::ssize(found)));
    if (page < 0) break;
    found.push_back(page);
  }
  return found;
}

int64_t RadixTree::MatchedPages(std::string_view salt, std::span<const int32_t> tokens,
                                int64_t max_pages) const {
  return std::ssize(Match(salt, tokens, max_pages));
}

std::vector<int32_t> RadixTree::Insert(std::string_view salt, std::span<const int32_t> tokens,
                                       std::span<const int32_t> pages) {
  LATTE_CHECK(std::ssize(pages) * page_tokens_ <= std::ssize(tokens), "{} pages, {} tokens",
              pages.size(), tokens.size());
  std::vector<int32_t> taken;
  if (pages.empty()) return taken;
  const auto owner = salts_.try_emplace(std::string(salt), 0).first;
  int32_t parent = -1;
  for (int64_t i = 0; i < std::ssize(pages); ++i) {
    const std::span<const int32_t> own = PageOf(tokens, i);
    int32_t page = Child(owner, parent, own);
    if (page >= 0) {
      Touch(page);
    } else {
      page = pages[static_cast<size_t>(i)];
      Add(owner, parent, own, page);
      taken.push_back(page);
    }
    parent = page;
  }
  return taken;
}

void RadixTree::Add(Salts::iterator salt, int32_t parent, std::span<const int32_t> tokens,
                    int32_t page) {
  Node& node = At(page);
  LATTE_CHECK(!node.in_tree, "page {} holds other tokens already", page);
  if (parent >= 0) {
    Node& above = At(parent);
    if (above.children++ == 0 && !above.used) leaves_.erase({above.last_use, parent});
  }
  node.in_tree = true;
  node.used = false;
  node.parent = parent;
  node.children = 0;
  node.held = 0;
  node.hash = HashOf(salt, parent, tokens);
  node.last_use = ++clock_;
  node.salt = salt;
  node.tokens.assign(tokens.begin(), tokens.end());
  by_hash_.emplace(node.hash, page);
  leaves_.emplace(node.last_use, page);
  ++salt->second;
  ++pages_;
  ++unused_;
  ++Evictable(page);
  SetUsed(page, true);
}

void RadixTree::Remove(int32_t page) {
  Node& node = At(page);
  LATTE_CHECK(node.in_tree && node.children == 0 && !node.used, "page {} is needed", page);
  leaves_.erase({node.last_use, page});
  const auto [begin, end] = by_hash_.equal_range(node.hash);
  by_hash_.erase(std::find_if(begin, end, [page](const auto& at) { return at.second == page; }));
  if (--node.salt->second == 0) salts_.erase(node.salt);
  if (node.parent >= 0) {
    Node& above = At(node.parent);
    if (--above.children == 0 && !above.used) leaves_.emplace(above.last_use, node.parent);
  }
  node = Node{.tokens = std::move(node.tokens)};  // their memory is used again
  --pages_;
  --unused_;
  --Evictable(page);
}

void RadixTree::SetUsed(int32_t page, bool used) {
  Node& node = At(page);
  LATTE_CHECK(node.in_tree, "page {} is not in the tree", page);
  if (node.used == used) return;
  if (used) {
    if (node.children == 0) leaves_.erase({node.last_use, page});
    node.used = true;
    --unused_;
    Hold(page);
  } else {
    node.used = false;
    node.last_use = ++clock_;
    if (node.children == 0) leaves_.emplace(node.last_use, page);
    ++unused_;
    Unhold(page);
  }
}

void RadixTree::Touch(int32_t page) {
  Node& node = At(page);
  const bool leaf = leaves_.erase({node.last_use, page}) != 0;
  node.last_use = ++clock_;
  if (leaf) leaves_.emplace(node.last_use, page);
}

// A page that becomes held holds the one before it, and so on up to one that was held already.
void RadixTree::Hold(int32_t page) {
  for (; page >= 0 && At(page).held++ == 0; page = At(page).parent) --Evictable(page);
}

void RadixTree::Unhold(int32_t page) {
  for (; page >= 0 && --At(page).held == 0; page = At(page).parent) ++Evictable(page);
}

PagePrefix RadixTree::PrefixOf(int32_t page) const {
  LATTE_CHECK(Contains(page), "page {} is not in the tree", page);
  std::vector<int32_t> path;
  for (int32_t at = page; at >= 0; at = At(at).parent) path.push_back(at);
  std::ranges::reverse(path);
  PagePrefix prefix{At(page).salt->first, {}};
  prefix.tokens.reserve(path.size() * static_cast<size_t>(page_tokens_));
  for (const int32_t at : path)
    prefix.tokens.insert(prefix.tokens.end(), At(at).tokens.begin(), At(at).tokens.end());
  return prefix;
}

}  // namespace latte

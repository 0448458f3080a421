// The most recently used compiled grammars.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>

#include "src/grammar/grammar.h"

namespace latte {

// Thread-compatible. A search looks at all entries, of which there are few: each takes kilobytes to
// megabytes.
class GrammarCache {
 public:
  using Compiled = std::shared_ptr<const CompiledGrammar>;

  explicit GrammarCache(int64_t most_bytes) : most_bytes_(most_bytes) {}

  // Null if it is not there.
  Compiled Find(const Grammar& grammar) {
    const auto found = std::ranges::find_if(entries_, [&](const Entry& e) {
      return e.grammar.syntax == grammar.syntax && e.grammar.text == grammar.text;
    });
    if (found == entries_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found);
    return found->compiled;
  }

  // Drops those that were not used for the longest time, as far as the bytes demand it.
  void Add(Grammar grammar, Compiled compiled, int64_t bytes) {
    bytes_ += bytes;
    entries_.push_front({std::move(grammar), std::move(compiled), bytes});
    while (entries_.size() > 1 && (bytes_ > most_bytes_ || entries_.size() > kMostEntries)) {
      bytes_ -= entries_.back().bytes;
      entries_.pop_back();
    }
  }

  size_t size() const { return entries_.size(); }

 private:
  static constexpr size_t kMostEntries = 1024;
  struct Entry {
    Grammar grammar;
    Compiled compiled;
    int64_t bytes = 0;
  };
  const int64_t most_bytes_;
  int64_t bytes_ = 0;
  std::list<Entry> entries_;  // used last first
};

}  // namespace latte

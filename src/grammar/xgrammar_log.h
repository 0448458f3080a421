// xgrammar's warnings, as values.
#pragma once

#include <string>
#include <vector>

namespace latte {

// Collects the warnings that xgrammar makes on this thread while the object lives; without one they
// are dropped. Not nested.
class GrammarWarnings {
 public:
  GrammarWarnings();
  ~GrammarWarnings();
  GrammarWarnings(const GrammarWarnings&) = delete;
  GrammarWarnings& operator=(const GrammarWarnings&) = delete;

  const std::vector<std::string>& texts() const { return texts_; }
  void Add(const std::string& text) { texts_.push_back(text); }

 private:
  std::vector<std::string> texts_;
};

}  // namespace latte

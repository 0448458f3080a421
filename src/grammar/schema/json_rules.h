// Rules of JSON itself, for values that a schema does not constrain.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace latte {

enum class JsonRule : uint8_t {
  kSpace,
  kEscape,  // what follows a backslash in a string
  kText,    // the rest of a string, with its last quote
  kString,
  kNumber,
  kInteger,
  kValue,
  kObject,
  kArray
};

// Adds the rules that are used, and those that they use, to a grammar.
class JsonRules {
 public:
  // The name of the rule. Values have no space around them.
  std::string Use(JsonRule rule);
  // Strings of least to most characters; most < 0: no bound. A character is one whether it is
  // escaped or not, but where more than 32 may be absent: there an escape counts as it is written.
  std::string UseString(int64_t least, int64_t most);
  std::string Text() const;
  int64_t price() const { return price_ / 1000; }  // of the strings with bounds, as kMostRulePrice

 private:
  std::string AtMost(int64_t most);
  std::string Exactly(int64_t count);
  std::string After(int64_t least, int64_t most);
  std::string OneMore(const std::string& rest);
  std::string Bounded(const std::string& name, const std::string& body);

  std::array<bool, 9> used_{};
  int64_t price_ = 0;                           // in thousandths
  std::map<std::string, std::string> bounded_;  // rules of strings with bounds
};

}  // namespace latte

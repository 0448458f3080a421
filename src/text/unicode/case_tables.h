// The characters that change case. Internal to case.cc.
#pragma once

#include <cstdint>
#include <span>

namespace latte {

// Every `step`-th character from `first` to `last` changes by `delta`.
struct CaseRun {
  char32_t first;
  char32_t last;
  uint32_t step;
  int32_t delta;
};
// A character that becomes two or three.
struct CaseLonger {
  char32_t from;
  char32_t to[3];  // zeros at the end
};
struct CaseTable {
  std::span<const CaseRun> runs;       // sorted
  std::span<const CaseLonger> longer;  // sorted
};

extern const CaseTable kLowerCase;
extern const CaseTable kUpperCase;
extern const CaseTable kTitleCase;  // only where it is not the upper case

}  // namespace latte

// Converts Markdown of answers to inks of a terminal: bold, italic, code, headings and list
// markers. All other text is unchanged, including backslashes of formulas.
#pragma once

#include <cstdint>
#include <vector>

namespace latte {

// How a character looks: a sum of inks.
enum Ink : uint8_t { kNoInk = 0, kBold = 1, kItalic = 2, kCode = 4 };

struct InkedChar {
  char32_t c = 0;
  uint8_t ink = kNoInk;
  bool operator==(const InkedChar&) const = default;
};

// Takes the text character by character and holds back only marks whose meaning the next character
// decides. Marks that have a meaning are left out; a mark of a list becomes "•". The caller keeps
// the lines of blocks of code to itself; their fences pass as they are. Thread-compatible.
class MarkdownInk {
 public:
  // Appends what is certain with `c`.
  void Put(char32_t c, std::vector<InkedChar>* out);
  // Appends what was held back. The text has ended.
  void Finish(std::vector<InkedChar>* out);

 private:
  void EndRun(char32_t next, std::vector<InkedChar>* out);
  void EndStars(char32_t next, std::vector<InkedChar>* out);
  void EndTicks(std::vector<InkedChar>* out);
  void Literal(std::vector<InkedChar>* out);
  void Emit(char32_t c, std::vector<InkedChar>* out);
  bool BeginsRun(char32_t c) const;

  uint8_t ink_ = kNoInk;
  bool heading_ = false;
  int code_ticks_ = 0;        // that began the piece of code
  char32_t run_ = 0;          // the mark that is held back
  int count_ = 0;             // how often it came; 0: none is held back
  bool escaped_ = false;      // a backslash is held back
  bool skips_space_ = false;  // after the mark of a heading
  bool is_fence_ = false;     // the rest of the line is the language of a block
  bool at_start_ = true;      // of a line, but for spaces
  char32_t previous_ = U'\n';
};

}  // namespace latte

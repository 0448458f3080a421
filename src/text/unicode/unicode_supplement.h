// Code points that Unicode 15, 15.1 and 16 added, with their general categories and scripts, for a
// regular-expression engine that knows Unicode 14. Where the engine is newer they are merely said
// twice. Made by tools/tokenizer/make_unicode_supplement.py.
#pragma once

#include <span>

namespace latte {

struct UnicodeSupplement {
  char32_t first;
  char32_t last;
  const char* name;  // "Lu", "Han"
};

std::span<const UnicodeSupplement> CategorySupplement();
std::span<const UnicodeSupplement> ScriptSupplement();

}  // namespace latte

#include "src/grammar/pattern/rule_price.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/strings.h"

namespace latte {
namespace {

// In thousandths of the unit, as measured.
constexpr int64_t kWideClass = 30'000;   // letters of both cases, or nearly all characters
constexpr int64_t kLetterClass = 4'000;  // letters of one case, or of other scripts
constexpr int64_t kFew = 8;              // letters, such as the digits of hexadecimal numbers
constexpr int64_t kSmallClass = 200;
constexpr int64_t kByte = 10;
constexpr int64_t kMostCopies = 256;  // xgrammar copies a repeated class so often at most
constexpr int64_t kFar = 1'000'000'000;
constexpr int kPasses = 16;
constexpr int kMostPasses = 64;
constexpr size_t kMostHead = 512;  // bytes of a rule's name and options
constexpr int kMostGroups = 200;   // in one another

bool IsNameChar(char c) { return IsAlphanumeric(c) || c == '_' || c == '-' || c == '.'; }

struct Repeats {
  int64_t least = 1;
  int64_t most = 1;  // kFar: no bound

  bool once() const { return least == 1 && most == 1; }
};

RuleShape Then(const RuleShape& a, const RuleShape& b) {
  RuleShape out;
  out.ends = a.ends && b.ends;
  out.varies = a.varies && b.varies;
  out.whole = out.varies ? std::min(kFar, a.whole + b.whole) : 0;
  out.lead = a.varies ? std::min(kFar, a.whole + b.lead) : a.lead;
  out.trail = b.varies ? std::min(kFar, b.whole + a.trail) : b.trail;
  out.longest = std::max({a.longest, b.longest, std::min(kFar, a.trail + b.lead)});
  out.count = std::max(a.count, b.count);
  out.nested = std::max(a.nested, b.nested);
  return out;
}

RuleShape Either(const RuleShape& a, const RuleShape& b) {
  return {.ends = a.ends || b.ends,
          .varies = a.varies || b.varies,
          .whole = std::max(a.whole, b.whole),
          .lead = std::max(a.lead, b.lead),
          .trail = std::max(a.trail, b.trail),
          .longest = std::max(a.longest, b.longest),
          .count = std::max(a.count, b.count),
          .nested = std::max(a.nested, b.nested)};
}

// A part that varies is a run of one, at least, and has two lengths, at least.
void CountItself(RuleShape* part) {
  if (!part->varies) return;
  part->whole = std::max<int64_t>(1, part->whole);
  part->lead = std::max(part->lead, part->whole);
  part->trail = std::max(part->trail, part->whole);
  part->longest = std::max(part->longest, part->whole);
  part->count = std::max<int64_t>(2, part->count);
}

RuleShape Repeated(RuleShape part, Repeats times) {
  if (times.once()) return part;
  const int64_t count = std::max<int64_t>(1, times.most == kFar ? times.least : times.most);
  const int64_t before = part.varies ? part.count : 1;
  part.count = std::min(kFar, before * count);
  if (before > 1 && count > 1) part.nested = std::max(part.nested, part.count);
  part.varies = part.varies || times.least != times.most;
  part.ends = part.ends || times.least == 0;
  if (part.varies) part.whole = part.lead = part.trail = 1;
  CountItself(&part);
  return part;
}

using RuleShapes = std::map<std::string, RuleShape, std::less<>>;

// Walks over a text of rules. A reader that meets what it does not know goes on behind it.
class PriceReader {
 public:
  explicit PriceReader(std::string_view text) : text_(text) {}

  // Every class with its repetitions.
  int64_t Classes();
  // The names of all rules, and where their bodies begin.
  std::vector<std::pair<std::string, size_t>> Rules();
  RuleShape Body(size_t at, const RuleShapes& shapes);

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  char Now() const { return AtEnd() ? '\0' : text_[at_]; }
  void SkipSpace();
  void SkipLiteral();
  int64_t ClassPrice();
  uint32_t ClassChar();
  Repeats Quantifier();
  int64_t Number(int64_t otherwise);
  std::string_view Name();
  bool AtRule() const;
  RuleShape Choice(int depth);
  RuleShape Sequence(int depth);
  std::optional<RuleShape> Element(int depth);
  void SkipArguments();

  std::string_view text_;
  size_t at_ = 0;
  const RuleShapes* shapes_ = nullptr;
};

void PriceReader::SkipSpace() {
  while (!AtEnd()) {
    if (Now() == '#') {
      while (!AtEnd() && Now() != '\n') ++at_;
    } else if (Now() == ' ' || Now() == '\n' || Now() == '\t' || Now() == '\r') {
      ++at_;
    } else {
      return;
    }
  }
}

void PriceReader::SkipLiteral() {
  for (++at_; !AtEnd() && Now() != '"'; ++at_)
    if (Now() == '\\') ++at_;
  ++at_;
}

// The price of a class at the cursor, which goes behind it. Only the letters matter: most tokens
// begin with them.
int64_t PriceReader::ClassPrice() {
  ++at_;
  if (Now() == '^') {
    while (!AtEnd() && Now() != ']') at_ += Now() == '\\' ? 2 : 1;
    ++at_;
    return kWideClass;
  }
  int64_t lower = 0;
  int64_t upper = 0;
  int64_t others = 0;  // beyond ASCII
  std::optional<uint32_t> before;
  bool is_range = false;
  while (!AtEnd() && Now() != ']') {
    if (Now() == '-' && before && !is_range) {
      is_range = true;
      ++at_;
      continue;
    }
    const uint32_t last = ClassChar();
    const uint32_t first = is_range ? *before : last;
    const auto in = [&](uint32_t from, uint32_t to) {
      const int64_t overlap = int64_t{std::min(last, to)} - int64_t{std::max(first, from)} + 1;
      return std::max<int64_t>(0, overlap);
    };
    lower += in('a', 'z');
    upper += in('A', 'Z');
    others += in(0x80, 0x10FFFF);
    is_range = false;
    before = last;
  }
  ++at_;
  const int kinds = (lower > kFew ? 1 : 0) + (upper > kFew ? 1 : 0) + (others > kFew ? 1 : 0);
  return kinds > 1 ? kWideClass : kinds == 1 ? kLetterClass : kSmallClass;
}

// A character of a class, or an escape; beyond ASCII, a byte of one.
uint32_t PriceReader::ClassChar() {
  if (Now() != '\\') return static_cast<unsigned char>(text_[at_++]);
  ++at_;
  const char kind = Now();
  ++at_;
  const size_t digits = kind == 'u' ? 4 : kind == 'U' ? 8 : kind == 'x' ? 2 : 0;
  if (digits == 0) return static_cast<unsigned char>(kind);
  uint32_t code = 0;
  const std::string_view hex = text_.substr(std::min(at_, text_.size()), digits);
  std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
  at_ += hex.size();
  return code;
}

int64_t PriceReader::Number(int64_t otherwise) {
  SkipSpace();
  if (!IsDigit(Now())) return otherwise;
  int64_t out = 0;
  for (; IsDigit(Now()); ++at_) out = std::min(kFar, out * 10 + (Now() - '0'));
  SkipSpace();
  return out;
}

Repeats PriceReader::Quantifier() {
  Repeats out;
  const char c = Now();
  if (c == '*' || c == '+' || c == '?') {
    ++at_;
    return {c == '+' ? 1 : 0, c == '?' ? 1 : kFar};
  }
  if (c != '{') return out;
  ++at_;
  out.least = Number(0);
  out.most = out.least;
  if (Now() == ',') {
    ++at_;
    out.most = Number(kFar);
  }
  if (Now() == '}') ++at_;
  return out;
}

int64_t PriceReader::Classes() {
  int64_t out = 0;
  while (!AtEnd()) {
    if (Now() == '"') {
      SkipLiteral();
    } else if (Now() == '[') {
      const int64_t price = ClassPrice();
      const Repeats times = Quantifier();
      const int64_t copies = times.most == kFar ? times.least + 1 : times.most;
      out += price * std::clamp<int64_t>(copies, 1, kMostCopies);
    } else if (Now() == '#') {
      SkipSpace();
    } else {
      ++at_;
    }
  }
  return out;
}

std::string_view PriceReader::Name() {
  const size_t begin = at_;
  while (!AtEnd() && IsNameChar(Now())) ++at_;
  return text_.substr(begin, at_ - begin);
}

// Whether a rule begins here: NAME ::= or NAME[…] ::=.
bool PriceReader::AtRule() const {
  PriceReader ahead(text_.substr(at_, kMostHead));
  if (ahead.Name().empty()) return false;
  if (ahead.Now() == '[') ahead.ClassPrice();
  ahead.SkipSpace();
  return !ahead.AtEnd() && ahead.text_.substr(ahead.at_).starts_with("::=");
}

void PriceReader::SkipArguments() {
  int depth = 0;
  do {
    if (Now() == '"') {
      SkipLiteral();
      continue;
    }
    depth += Now() == '(' ? 1 : Now() == ')' ? -1 : 0;
    ++at_;
  } while (!AtEnd() && depth > 0);
}

std::optional<RuleShape> PriceReader::Element(int depth) {
  SkipSpace();
  if (AtEnd() || Now() == '|' || Now() == ')') return std::nullopt;
  RuleShape part{.ends = true};
  if (Now() == '"') {
    const size_t begin = at_;
    SkipLiteral();
    part.varies = at_ - begin == 2;  // nothing at all
  } else if (Now() == '[') {
    ClassPrice();
  } else if (Now() == '(') {
    if (depth >= kMostGroups) return std::nullopt;
    ++at_;
    part = Choice(depth + 1);
    if (Now() == ')') ++at_;
  } else if (IsNameChar(Now())) {
    if (AtRule()) return std::nullopt;
    const std::string_view name = Name();
    const auto known = shapes_->find(name);
    if (Now() == '(')
      SkipArguments();
    else
      part = known == shapes_->end() ? RuleShape() : known->second;
  } else {
    ++at_;  // no grammar
  }
  SkipSpace();
  return Repeated(part, Quantifier());
}

RuleShape PriceReader::Sequence(int depth) {
  std::optional<RuleShape> out;
  while (const auto part = Element(depth)) out = out ? Then(*out, *part) : *part;
  return out.value_or(RuleShape{.ends = true, .varies = true});
}

RuleShape PriceReader::Choice(int depth) {
  RuleShape out = Sequence(depth);
  while (Now() == '|') {
    ++at_;
    out = Either(out, Sequence(depth));
  }
  CountItself(&out);
  return out;
}

std::vector<std::pair<std::string, size_t>> PriceReader::Rules() {
  std::vector<std::pair<std::string, size_t>> out;
  for (at_ = 0; SkipSpace(), !AtEnd();) {
    if (Now() == '"') {
      SkipLiteral();
    } else if (AtRule()) {
      std::string name(Name());
      if (Now() == '[') ClassPrice();
      SkipSpace();
      at_ += 3;
      out.emplace_back(std::move(name), at_);
    } else if (Name().empty()) {
      if (Now() == '[')
        ClassPrice();
      else
        ++at_;
    }
  }
  return out;
}

RuleShape PriceReader::Body(size_t at, const RuleShapes& shapes) {
  at_ = at;
  shapes_ = &shapes;
  return Choice(0);
}

}  // namespace

int64_t PriceOfRules(std::string_view rules) {
  return PriceReader(rules).Classes() + static_cast<int64_t>(rules.size()) * kByte;
}

// A rule's shape follows from the shapes of the rules in it: they are computed again, from the last
// to the first and back, until nothing changes. Where rules contain themselves, runs may grow for
// ever.
RuleShapes ShapesOf(std::string_view ebnf) {
  PriceReader reader(ebnf);
  const auto rules = reader.Rules();
  RuleShapes out;
  bool changed = true;
  bool more_end = true;
  for (int pass = 0; changed && (pass < kPasses || (more_end && pass < kMostPasses)); ++pass) {
    changed = more_end = false;
    const auto update = [&](const auto& rule) {
      const RuleShape shape = reader.Body(rule.second, out);
      RuleShape& known = out[rule.first];
      changed |= shape != known;
      more_end |= shape.ends != known.ends;
      known = shape;
    };
    if (pass % 2 == 0)
      std::for_each(rules.begin(), rules.end(), update);
    else
      std::for_each(rules.rbegin(), rules.rend(), update);
  }
  // In an odd order it takes too long to know.
  if (more_end)
    for (auto& [name, shape] : out) shape.ends = true;
  return out;
}

Status CheckPrice(std::string_view ebnf) {
  if (const int64_t price = PriceOfRules(ebnf) / 1000; price > kMostRulePrice)
    return Unsupported(fmt::format(
        "grammar: expected rules of a price of at most {}, found {}; use fewer or shorter "
        "rules, and lower the counts behind character classes",
        kMostRulePrice, price));
  for (const auto& [name, shape] : ShapesOf(ebnf)) {
    if (shape.nested > kMostNested)
      return Unsupported(fmt::format(
          "grammar: rule '{}': expected repetitions in one another with counts whose product is at "
          "most {}, found {}; lower the counts, or put a separator between the repetitions",
          name, kMostNested, shape.nested));
    if (shape.longest > kMostVarying)
      return Unsupported(
          fmt::format("grammar: rule '{}': expected at most {} parts next to one another that may "
                      "be left out or repeated, found {} or more; use one repetition for them",
                      name, kMostVarying, shape.longest));
  }
  return {};
}

}  // namespace latte

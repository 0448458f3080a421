// Texts of a story grammar: generated at random, parsed by backtracking. Neither recurses, so
// nesting costs heap memory, and both stop after a fixed number of steps.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lab/eval/story_grammar.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

// A story of tiny's grammar takes 300 steps to generate and a few thousand, rarely ten thousand, to
// parse.
constexpr int64_t kMaxWriteSteps = 100'000;
constexpr int64_t kMaxParseSteps = 200'000;
constexpr size_t kMaxTextBytes = 1 << 20;
constexpr size_t kMaxExpected = 6;  // expected pieces named in a refusal

}  // namespace

class StoryWriter {
 public:
  StoryWriter(const StoryGrammar& grammar, Random& random)
      : g_(grammar), random_(random), bound_(grammar.variables_.size(), StoryGrammar::kUnbound) {}

  Result<std::string> Write() {
    Enter(g_.start_);
    for (int64_t steps = 0; !stack_.empty(); ++steps) {
      if (steps == kMaxWriteSteps || out_.size() > kMaxTextBytes)
        return Corrupt(fmt::format(
            "{}: a text did not end within {} steps and {} bytes; look for a rule that leads back "
            "to itself",
            g_.where_, kMaxWriteSteps, kMaxTextBytes));
      Place& place = stack_.back();
      if (place.index == place.sequence->size()) {
        stack_.pop_back();
        continue;
      }
      const StoryGrammar::Node& node = (*place.sequence)[place.index++];
      if (node.kind == StoryGrammar::Node::Kind::kText)
        out_ += node.text;
      else if (node.kind == StoryGrammar::Node::Kind::kBranches)
        Enter(node.branches);
      else
        LATTE_RETURN_IF_ERROR(WriteSlot(node));
    }
    return std::move(out_);
  }

 private:
  struct Place {
    const StoryGrammar::Sequence* sequence;
    size_t index;
  };

  void Enter(size_t branches) {
    const std::vector<size_t>& choices = g_.branches_[branches];
    stack_.push_back({&g_.sequences_[choices[random_.Below(choices.size())]], 0});
  }

  Status WriteSlot(const StoryGrammar::Node& node) {
    size_t& row = bound_[node.variable];
    if (row == StoryGrammar::kUnbound) {
      std::vector<size_t> fitting;
      for (size_t i = 0; i < g_.Rows(node.variable); ++i)
        if (g_.Fits(node.variable, i, bound_)) fitting.push_back(i);
      if (fitting.empty())
        return Corrupt(
            fmt::format("{}: no row for the variable '{}' agrees with the rows that a text already "
                        "has; give its table more rows",
                        g_.where_, g_.variables_[node.variable].name));
      row = fitting[random_.Below(fitting.size())];
    }
    out_ += g_.Word(node.variable, row, node.attribute);
    return {};
  }

  const StoryGrammar& g_;
  Random& random_;
  StoryGrammar::Bindings bound_;
  std::vector<Place> stack_;
  std::string out_;
};

class StoryParser {
 public:
  StoryParser(const StoryGrammar& grammar, std::string_view text)
      : g_(grammar), text_(text), bound_(grammar.variables_.size(), StoryGrammar::kUnbound) {}

  StoryVerdict Parse() {
    const StoryGrammar::Sequence root = {
        {.kind = StoryGrammar::Node::Kind::kBranches, .branches = g_.start_}};
    here_ = {&root, 0, kNowhere, 0};
    while (steps_ < kMaxParseSteps) {
      const bool complete = here_.index == here_.sequence->size() && here_.frame == kNowhere;
      if (complete && here_.at == text_.size()) return {.accepted = true};
      if (complete) Expect("end of text");
      if ((complete || !Advance()) && !Backtrack()) return Refused();
    }
    return {.at = furthest_, .why = fmt::format("not judged within {} steps", kMaxParseSteps)};
  }

 private:
  using Node = StoryGrammar::Node;
  static constexpr size_t kNowhere = SIZE_MAX;

  // The place where a sequence continues after a nested branch.
  struct Frame {
    const StoryGrammar::Sequence* sequence;
    size_t index;
    size_t frame;  // the continuation: index into frames_ or kNowhere
  };
  struct State {
    const StoryGrammar::Sequence* sequence;
    size_t index;
    size_t frame;
    size_t at;  // byte of the text
  };
  // A node with untried options, and the state to restore for them.
  struct Choice {
    State state;
    size_t next;
    size_t frames;
    size_t trail;
  };

  // One step forward from here_; false if nothing fits.
  bool Advance() {
    ++steps_;
    if (here_.index == here_.sequence->size()) {
      const Frame& frame = frames_[here_.frame];
      here_ = {frame.sequence, frame.index, frame.frame, here_.at};
      return true;
    }
    const Node& node = (*here_.sequence)[here_.index];
    if (node.kind == Node::Kind::kText) return Eat(node.text);
    if (node.kind == Node::Kind::kSlot && bound_[node.variable] != StoryGrammar::kUnbound)
      return Eat(g_.Word(node.variable, bound_[node.variable], node.attribute));
    choices_.push_back({here_, 0, frames_.size(), trail_.size()});
    return TakeOption();
  }

  bool Eat(std::string_view word) {
    if (!text_.substr(here_.at).starts_with(word)) {
      Expect(word);
      return false;
    }
    here_.at += word.size();
    ++here_.index;
    return true;
  }

  // Goes back to the latest node with an untried option that fits.
  bool Backtrack() {
    while (!choices_.empty()) {
      if (TakeOption()) return true;
      choices_.pop_back();
    }
    return false;
  }

  // Takes the next fitting option of the latest choice; false if none is left.
  bool TakeOption() {
    Choice& choice = choices_.back();
    here_ = choice.state;
    frames_.resize(choice.frames);
    for (; trail_.size() > choice.trail; trail_.pop_back())
      bound_[trail_.back()] = StoryGrammar::kUnbound;
    const Node& node = (*here_.sequence)[here_.index];
    if (node.kind == Node::Kind::kSlot) return TakeRow(node, choice);
    const std::vector<size_t>& branches = g_.branches_[node.branches];
    if (choice.next == branches.size()) return false;
    frames_.push_back({here_.sequence, here_.index + 1, here_.frame});
    here_ = {&g_.sequences_[branches[choice.next++]], 0, frames_.size() - 1, here_.at};
    return true;
  }

  bool TakeRow(const Node& node, Choice& choice) {
    while (choice.next < g_.Rows(node.variable)) {
      const size_t row = choice.next++;
      ++steps_;
      if (!g_.Fits(node.variable, row, bound_) || !Eat(g_.Word(node.variable, row, node.attribute)))
        continue;
      bound_[node.variable] = row;
      trail_.push_back(node.variable);
      return true;
    }
    return false;
  }

  void Expect(std::string_view what) {
    if (here_.at > furthest_) expected_.clear();
    furthest_ = std::max(furthest_, here_.at);
    if (here_.at == furthest_ && expected_.size() < kMaxExpected &&
        std::find(expected_.begin(), expected_.end(), what) == expected_.end())
      expected_.push_back(what);
  }

  StoryVerdict Refused() const {
    constexpr size_t kShown = 24;
    constexpr size_t kShownExpected = 64;
    std::vector<std::string> expected;
    for (const std::string_view what : expected_)
      expected.push_back(fmt::format("'{}'", Printable(what, kShownExpected)));
    return {
        .at = furthest_,
        .why = fmt::format("at byte {} found '{}', expected one of {}", furthest_,
                           Printable(text_.substr(furthest_, kShown)), fmt::join(expected, ", "))};
  }

  const StoryGrammar& g_;
  std::string_view text_;
  StoryGrammar::Bindings bound_;
  State here_{};
  std::vector<Frame> frames_;
  std::vector<Choice> choices_;
  std::vector<size_t> trail_;  // variables in the order in which they were bound
  int64_t steps_ = 0;
  size_t furthest_ = 0;
  std::vector<std::string_view> expected_;
};

Result<std::string> StoryGrammar::Generate(Random& random) const {
  return StoryWriter(*this, random).Write();
}

StoryVerdict StoryGrammar::Parse(std::string_view text) const {
  return StoryParser(*this, text).Parse();
}

}  // namespace latte

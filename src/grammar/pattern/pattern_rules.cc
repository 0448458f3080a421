#include "src/grammar/pattern/pattern_rules.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

constexpr size_t kMostPlaces = 4'000;
constexpr size_t kMostStates = 512;
constexpr int64_t kMostWork = 4'000'000;  // comparisons of a character with an edge
constexpr int64_t kWorkPerPlace = 8;

using Places = std::vector<int32_t>;  // sorted

tl::unexpected<Error> TooManyStates() {
  return Unsupported(
      fmt::format("a text whose constraints take more than {} states cannot be enforced; lower the "
                  "counts, or leave "
                  "a constraint out",
                  kMostStates));
}

// A pattern as a nondeterministic automaton. Places are steps in it.
class PlaceAutomaton {
 public:
  static Result<PlaceAutomaton> Of(const Pattern& pattern) {
    PlaceAutomaton out;
    out.begin_ = out.Add();
    out.end_ = out.Add();
    if (!out.Connect(pattern, out.begin_, out.end_)) return TooManyStates();
    return out;
  }

  Places Begin() const { return Closed({begin_}); }
  bool Ends(const Places& places) const { return std::ranges::binary_search(places, end_); }
  // The sets of characters that lead on, and where.
  void Moves(const Places& places, std::vector<std::pair<const CharSet*, int32_t>>* out) const {
    for (const int32_t place : places)
      for (const Edge& edge : edges_[static_cast<size_t>(place)])
        if (edge.chars) out->emplace_back(&*edge.chars, edge.to);
  }
  Places Closed(Places places) const;

 private:
  struct Edge {
    std::optional<CharSet> chars;  // none: without a character
    int32_t to = 0;
  };

  int32_t Add() {
    edges_.emplace_back();
    return static_cast<int32_t>(edges_.size() - 1);
  }
  void Link(int32_t from, int32_t to) {
    edges_[static_cast<size_t>(from)].push_back({std::nullopt, to});
  }
  // false: too many places.
  bool Connect(const Pattern& pattern, int32_t from, int32_t to);
  bool ConnectRepeat(const Pattern& pattern, int32_t from, int32_t to);

  std::vector<std::vector<Edge>> edges_;
  int32_t begin_ = 0;
  int32_t end_ = 0;
};

bool PlaceAutomaton::Connect(const Pattern& pattern, int32_t from, int32_t to) {
  if (edges_.size() > kMostPlaces) return false;
  switch (pattern.kind) {
    case Pattern::Kind::kChars:
      edges_[static_cast<size_t>(from)].push_back({pattern.chars, to});
      return true;
    case Pattern::Kind::kChoice:
      return std::ranges::all_of(pattern.parts,
                                 [&](const Pattern& part) { return Connect(part, from, to); });
    case Pattern::Kind::kRepeat:
      return ConnectRepeat(pattern, from, to);
    case Pattern::Kind::kSequence:
      break;
  }
  for (const Pattern& part : pattern.parts) {
    const int32_t next = Add();
    if (!Connect(part, from, next)) return false;
    from = next;
  }
  Link(from, to);
  return true;
}

bool PlaceAutomaton::ConnectRepeat(const Pattern& pattern, int32_t from, int32_t to) {
  const Pattern& part = pattern.parts.front();
  const int copies = std::max(pattern.least, pattern.most);
  for (int i = 0; i < copies; ++i) {
    if (i >= pattern.least) Link(from, to);
    const int32_t next = Add();
    if (!Connect(part, from, next)) return false;
    from = next;
  }
  if (pattern.most == Pattern::kNoEnd) {
    const int32_t loop = Add();  // so that nothing else enters or leaves it
    Link(from, loop);
    if (!Connect(part, loop, loop)) return false;
    from = loop;
  }
  Link(from, to);
  return true;
}

Places PlaceAutomaton::Closed(Places places) const {
  std::set<int32_t> found(places.begin(), places.end());
  while (!places.empty()) {
    const int32_t place = places.back();
    places.pop_back();
    for (const Edge& edge : edges_[static_cast<size_t>(place)])
      if (!edge.chars && found.insert(edge.to).second) places.push_back(edge.to);
  }
  return {found.begin(), found.end()};
}

// The set of texts as a deterministic automaton, whose states are made when they are reached.
class SetAutomaton {
 public:
  using State = std::vector<Places>;  // of every pattern
  using Moves = std::vector<std::pair<CharSet, State>>;

  static Result<SetAutomaton> Of(const PatternSet& set) {
    SetAutomaton out;
    out.required_ = set.all_of.size();
    for (const auto* patterns : {&set.all_of, &set.none_of})
      for (const Pattern& pattern : *patterns) {
        LATTE_ASSIGN_OR_RETURN(PlaceAutomaton made, PlaceAutomaton::Of(pattern));
        out.parts_.push_back(std::move(made));
      }
    return out;
  }

  State Begin() const {
    State out;
    for (const PlaceAutomaton& part : parts_) out.push_back(part.Begin());
    return out;
  }
  bool Ends(const State& state) const {
    for (size_t i = 0; i < parts_.size(); ++i)
      if (parts_[i].Ends(state[i]) != (i < required_)) return false;
    return true;
  }
  // Characters that lead to the same state are together. Adds to `work`.
  Moves From(const State& state, int64_t* work) const;

 private:
  bool IsDead(const State& state) const {
    return std::any_of(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(required_),
                       [](const Places& places) { return places.empty(); });
  }

  std::vector<PlaceAutomaton> parts_;
  size_t required_ = 0;
};

SetAutomaton::Moves SetAutomaton::From(const State& state, int64_t* work) const {
  std::vector<std::vector<std::pair<const CharSet*, int32_t>>> moves(parts_.size());
  std::set<char32_t> cuts = {0, 0x110000};
  for (size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].Moves(state[i], &moves[i]);
    for (const auto& [chars, to] : moves[i])
      for (const CharRange& range : chars->ranges()) {
        cuts.insert(range.first);
        cuts.insert(range.last + 1);
      }
  }
  for (const auto& edges : moves) *work += static_cast<int64_t>(cuts.size() * (edges.size() + 1));
  std::map<State, CharSet> found;
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
    State next(parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
      for (const auto& [chars, to] : moves[i])
        if (chars->Contains(*cut)) next[i].push_back(to);
      next[i] = parts_[i].Closed(std::move(next[i]));
      *work += kWorkPerPlace * std::ssize(next[i]);
    }
    if (!IsDead(next)) found[next].Add(CharRange{*cut, *std::next(cut) - 1});
  }
  Moves out;
  for (auto& [next, chars] : found)
    if (!chars.empty()) out.emplace_back(std::move(chars), next);
  return out;
}

}  // namespace

Result<StateTable> StatesOf(const PatternSet& set) {
  LATTE_ASSIGN_OR_RETURN(const SetAutomaton automaton, SetAutomaton::Of(set));
  StateTable out;
  std::map<SetAutomaton::State, size_t> numbers = {{automaton.Begin(), 0}};
  std::vector<SetAutomaton::State> states = {automaton.Begin()};
  std::vector<std::vector<size_t>> before(1);
  int64_t work = 0;
  for (size_t i = 0; i < states.size(); ++i) {
    if (states.size() > kMostStates || work > kMostWork) return TooManyStates();
    StateTable::Row row{.ends = automaton.Ends(states[i])};
    for (auto& [chars, next] : automaton.From(states[i], &work)) {
      const auto [known, is_new] = numbers.emplace(next, states.size());
      if (is_new) {
        states.push_back(next);
        before.emplace_back();
      }
      before[known->second].push_back(i);
      row.moves.emplace_back(std::move(chars), known->second);
    }
    out.rows.push_back(std::move(row));
  }
  out.useful.assign(states.size(), false);
  std::vector<size_t> todo;
  for (size_t i = 0; i < states.size(); ++i)
    if (out.rows[i].ends) todo.push_back(i);
  while (!todo.empty()) {
    const size_t i = todo.back();
    todo.pop_back();
    if (out.useful[i]) continue;
    out.useful[i] = true;
    todo.insert(todo.end(), before[i].begin(), before[i].end());
  }
  return out;
}

Result<bool> IsInSet(const PatternSet& set, std::string_view utf8) {
  LATTE_ASSIGN_OR_RETURN(const SetAutomaton automaton, SetAutomaton::Of(set));
  SetAutomaton::State state = automaton.Begin();
  int64_t work = 0;
  while (!utf8.empty()) {
    const Utf8Step step = DecodeUtf8(utf8);
    utf8.remove_prefix(static_cast<size_t>(step.bytes));
    const auto moves = automaton.From(state, &work);
    if (work > kMostWork) return TooManyStates();
    const auto move = std::ranges::find_if(
        moves, [&](const auto& m) { return m.first.Contains(step.code_point); });
    if (move == moves.end()) return false;
    state = move->second;
  }
  return automaton.Ends(state);
}

}  // namespace latte

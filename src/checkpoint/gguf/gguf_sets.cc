#include "src/checkpoint/gguf/gguf_sets.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/bytes_text.h"
#include "src/base/fields/suggest.h"
#include "src/base/strings.h"
#include "src/checkpoint/gguf/gguf_parts.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr std::string_view kGgufEnd = ".gguf";

std::string_view FileNameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The name of the folder that holds `path`; empty in the top folder.
std::string_view FolderNameOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : FileNameOf(path.substr(0, slash));
}

bool IsAnyOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Whether a word, in small letters, names a type: q4_k_m, iq2_xxs, tq1_0, bf16, mxfp4_moe.
bool IsTypeWord(std::string_view word) {
  const size_t number = std::min(word.find_first_of(kDigits), word.size());
  const size_t end = std::min(word.find_first_not_of(kDigits, number), word.size());
  const std::string_view letters = word.substr(0, number);
  const std::string_view digits = word.substr(number, end - number);
  const bool codes = IsAnyOf(letters, {"q", "iq", "tq"}) && digits.size() == 1;
  const bool floats = IsAnyOf(letters, {"f", "bf", "fp", "mxfp", "nvfp"}) &&
                      IsAnyOf(digits, {"4", "8", "16", "32", "64"});
  return (codes || floats) && (end == word.size() || word[end] == '_');
}

// `begin`, or the place before it where the mark of a family of types begins: "ud-", "smol-".
size_t WithMark(std::string_view text, size_t begin) {
  const std::string_view left = text.substr(0, begin);
  for (const std::string_view mark : {"ud-", "smol-"}) {
    if (!left.ends_with(mark)) continue;
    const size_t at = begin - mark.size();
    if (at == 0 || left[at - 1] == '-' || left[at - 1] == '.') return at;
  }
  return begin;
}

// The place in `text`, in small letters, where its last word that names a type begins, with the
// mark before it; nothing if there is none.
std::optional<size_t> BeginOfQuant(std::string_view text) {
  for (size_t end = text.size();;) {
    const size_t before = text.substr(0, end).find_last_of("-.");
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    for (size_t at = begin; at < end; at = std::min(text.find('_', at), end) + 1)
      if (IsTypeWord(text.substr(at, end - at))) return WithMark(text, at);
    if (begin == 0) return std::nullopt;
    end = before;
  }
}

// The end of `text` from the word that names a type, or nothing.
std::string QuantIn(std::string_view text) {
  const std::optional<size_t> begin = BeginOfQuant(Lowered(text));
  return begin ? std::string(text.substr(*begin)) : "";
}

// The stem of a file that was cut: "X.Q8_0" of "X.Q8_0.gguf.part1of2", "X.Q8_0.gguf-split-a".
std::optional<std::string_view> StemOfCut(std::string_view name) {
  const size_t end = name.find(kGgufEnd);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string rest = Lowered(name.substr(end + kGgufEnd.size()));
  for (const std::string_view cut : {".part", "-part", ".split", "-split"})
    if (rest.starts_with(cut)) return name.substr(0, end);
  return std::nullopt;
}

// The files of one set have this in common.
struct SetKey {
  std::string stem;   // with the folder
  int64_t parts = 0;  // 0: one file
  bool cut = false;
  auto operator<=>(const SetKey&) const = default;
};
using FilesByPart = std::map<int64_t, const SizedFile*>;

// A set, and the number of a part in it: 0 for a file that has none.
struct PlaceInSet {
  SetKey key;
  int64_t number = 0;
};

// Nothing for a file that is no part of a model.
std::optional<PlaceInSet> PlaceOf(const std::string& path) {
  const std::string_view name = FileNameOf(path);
  if (IsGgufCompanion(name)) return std::nullopt;
  PlaceInSet out;
  if (const std::optional<std::string_view> stem = StemOfCut(name)) {
    out.key = {path.substr(0, path.size() - name.size()) + std::string(*stem), 0, true};
  } else if (std::optional<GgufPart> part = ParseGgufPart(path)) {
    out = {{std::move(part->prefix), part->count, false}, part->number};
  } else if (name.ends_with(kGgufEnd)) {
    out.key = {path.substr(0, path.size() - kGgufEnd.size()), 0, false};
  }
  if (FileNameOf(out.key.stem).empty()) return std::nullopt;
  return out;
}

GgufSet SetOf(const SetKey& key, const FilesByPart& files) {
  GgufSet out;
  out.cut = key.cut;
  out.stem = FileNameOf(key.stem);
  out.quant = QuantIn(out.stem);
  if (out.quant.empty()) out.quant = QuantIn(FolderNameOf(key.stem));
  out.name = out.quant.empty() ? out.stem : out.quant;
  int64_t expected = 1;
  for (const auto& [number, file] : files) {
    out.files.push_back(file->path);
    out.bytes += file->bytes;
    if (number == expected) ++expected;
  }
  if (expected <= key.parts)
    out.missing = FileNameOf(GgufPart{key.stem, expected, key.parts}.Path(expected));
  return out;
}

bool IsSame(std::string_view a, std::string_view b) { return Lowered(a) == Lowered(b); }

// Whether `stem` ends with `quant` as a whole word, and with more than the quant that it has.
bool EndsWithWord(const GgufSet& set, std::string_view quant) {
  const std::string stem = Lowered(set.stem);
  if (quant.size() <= set.quant.size() || !stem.ends_with(Lowered(quant))) return false;
  return stem.size() == quant.size() ||
         std::string_view("-._").find(stem[stem.size() - quant.size() - 1]) !=
             std::string_view::npos;
}

// The sets that `quant` may mean.
std::vector<GgufSet> SetsMeant(const std::vector<GgufSet>& sets, std::string_view quant) {
  std::vector<GgufSet> exact, longer;
  for (const GgufSet& set : sets) {
    if (quant.empty() || IsSame(set.quant, quant) || IsSame(FolderNameOf(set.files.front()), quant))
      exact.push_back(set);
    else if (EndsWithWord(set, quant))
      longer.push_back(set);
  }
  return exact.empty() ? longer : exact;
}

// "Q4_K_M (9.10 GB), Q8_0 (16.20 GB)"
template <class Name>
std::string ListOf(const std::vector<GgufSet>& sets, Name&& name) {
  constexpr size_t kListed = 30;
  std::vector<std::string> out;
  for (const GgufSet& set : sets)
    if (out.size() < kListed)
      out.push_back(fmt::format("{} ({})", Printable(name(set), 100), BytesText(set.bytes)));
  return fmt::format(
      "{}{}", fmt::join(out, ", "),
      sets.size() > kListed ? fmt::format(" and {} more", sets.size() - kListed) : "");
}

// The error for a quant that means several models.
tl::unexpected<Error> SeveralMeant(const std::vector<GgufSet>& found, const std::string& repo) {
  const GgufSet& first = found.front();
  const bool differ = std::any_of(found.begin(), found.end(),
                                  [&](const GgufSet& set) { return set.stem != first.stem; });
  const std::string list =
      ListOf(found, [](const GgufSet& set) -> const std::string& { return set.files.front(); });
  return InvalidArgument(
      fmt::format("expected one GGUF model, found {}: {}; {}", found.size(), list,
                  differ ? fmt::format("write more of the file's name, as in {}:{}", repo,
                                       Printable(first.stem, 100))
                         : "download one of them with --include and the name of its folder"));
}

}  // namespace

bool IsGgufCompanion(std::string_view file_name) {
  std::string stem = Lowered(file_name);
  if (stem.ends_with(kGgufEnd)) stem.resize(stem.size() - kGgufEnd.size());
  for (const std::string_view begin : {"mmproj", "imatrix", "mtp-"})
    if (stem.starts_with(begin)) return true;
  for (const char mark : {'-', '.', '_'})
    if (stem.ends_with(mark + std::string("imatrix")) ||
        stem.find(mark + std::string("mmproj")) != std::string::npos)
      return !stem.ends_with("imatrix") || !BeginOfQuant(stem);
  return false;
}

std::vector<GgufSet> GgufSetsOf(const std::vector<SizedFile>& files) {
  std::map<SetKey, FilesByPart> sets;
  for (const SizedFile& file : files) {
    const std::optional<PlaceInSet> place = PlaceOf(file.path);
    if (!place) continue;
    FilesByPart& parts = sets[place->key];
    // Pieces of a cut file have no numbers that are known.
    parts.emplace(place->number == 0 ? static_cast<int64_t>(parts.size()) : place->number, &file);
  }
  std::vector<GgufSet> out;
  std::map<std::string, int> of_quant;
  for (const auto& [key, parts] : sets) {
    out.push_back(SetOf(key, parts));
    if (!key.cut) ++of_quant[Lowered(out.back().name)];
  }
  for (GgufSet& set : out)
    if (of_quant[Lowered(set.name)] > 1) set.name = set.stem;
  std::stable_sort(out.begin(), out.end(),
                   [](const GgufSet& a, const GgufSet& b) { return a.bytes < b.bytes; });
  return out;
}

Result<GgufSet> ChooseGgufSet(const std::vector<GgufSet>& sets, std::string_view quant,
                              const std::string& repo) {
  std::vector<GgufSet> whole, cut;
  for (const GgufSet& set : sets) (set.cut ? cut : whole).push_back(set);
  std::vector<GgufSet> found = SetsMeant(whole, quant);
  if (found.size() == 1) {
    if (found.front().missing.empty()) return std::move(found.front());
    return NotFound(fmt::format("expected all parts of {}, '{}' is missing",
                                Printable(found.front().name), Printable(found.front().missing)));
  }
  const auto name = [](const GgufSet& set) -> const std::string& { return set.name; };
  if (!found.empty() && !quant.empty()) return SeveralMeant(found, repo);
  if (!found.empty())
    return InvalidArgument(fmt::format(
        "expected one GGUF model, found {}: {}; write one of them after the name, as in {}:{}",
        found.size(), ListOf(found, name), repo, Printable(found.front().name, 100)));
  if (const std::vector<GgufSet> meant = SetsMeant(cut, quant); !meant.empty())
    return Unsupported(fmt::format(
        "expected a whole file or parts NAME-00001-of-00002.gguf, found '{}', a piece of a file; "
        "choose another quant, or download the pieces with --include and join them with cat",
        Printable(meant.front().files.front())));
  std::vector<std::string> names;
  for (const GgufSet& set : whole) names.push_back(set.name);
  return NotFound(fmt::format(
      "expected a GGUF model {}, found {}{}", quant, whole.empty() ? "none" : ListOf(whole, name),
      whole.empty() ? ""
                    : fmt::format("; write one of them after the name, as in {}:{}", repo,
                                  Printable(Closest(quant, names).value_or(names.front()), 100))));
}

}  // namespace latte

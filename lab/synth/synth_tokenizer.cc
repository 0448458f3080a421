#include "lab/synth/synth_tokenizer.h"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/text/unicode/byte_level.h"

namespace latte {
namespace {

constexpr std::string_view kConsonants = "bcdfghjklmnpqrstvwxz";
constexpr std::string_view kVowels = "aeiou";
constexpr size_t kSyllables = kConsonants.size() * kVowels.size();
constexpr size_t kPairs = kSyllables * kSyllables;
constexpr size_t kTriples = kPairs * kSyllables;
constexpr int64_t kBytes = 256;
constexpr auto kMostWords = static_cast<int64_t>(kBytes + 2 * kSyllables + 2 * kPairs + kTriples);

constexpr std::string_view kBos = "<|begin|>";
constexpr std::string_view kEos = "<|end|>";
constexpr std::string_view kUser = "<|user|>";
constexpr std::string_view kAssistant = "<|assistant|>";

std::string Syllable(size_t i) {
  return {kConsonants[i / kVowels.size()], kVowels[i % kVowels.size()]};
}

// The ordinary tokens, in the order of their merges.
class Words {
 public:
  explicit Words(int64_t count) : count_(static_cast<size_t>(count)) {
    const std::string blank(ByteAlphabetSymbol(' '));
    for (int64_t byte = 0; byte < kBytes; ++byte)
      tokens_.emplace_back(ByteAlphabetSymbol(static_cast<uint8_t>(byte)));
    for (size_t i = 0; i < kSyllables; ++i) Merge(Syllable(i).substr(0, 1), Syllable(i).substr(1));
    for (size_t i = 0; i < kSyllables; ++i) Merge(blank, Syllable(i));
    for (size_t i = 0; i < kPairs; ++i)
      Merge(blank + Syllable(i / kSyllables), Syllable(i % kSyllables));
    for (size_t i = 0; i < kPairs; ++i) Merge(Syllable(i / kSyllables), Syllable(i % kSyllables));
    MergeTriples(blank);
  }

  const std::vector<std::string>& tokens() const { return tokens_; }
  const JsonOut& merges() const { return merges_; }

 private:
  bool full() const { return tokens_.size() == count_; }

  void Merge(const std::string& left, const std::string& right) {
    if (full()) return;
    tokens_.push_back(left + right);
    merges_.push_back(JsonOut::array({left, right}));
  }

  // A step that has no divisor in common with the number of words visits all of them, scattered.
  void MergeTriples(const std::string& blank) {
    constexpr size_t kStep = 617'921;
    for (size_t i = 0; i < kTriples && !full(); ++i) {
      const size_t word = i * kStep % kTriples;
      Merge(blank + Syllable(word / kPairs) + Syllable(word / kSyllables % kSyllables),
            Syllable(word % kSyllables));
    }
  }

  size_t count_;
  std::vector<std::string> tokens_;
  JsonOut merges_ = JsonOut::array();
};

using Special = std::pair<int64_t, std::string_view>;  // id and text

// The special tokens: the roles take the highest ids that are free.
std::vector<Special> Specials(int64_t vocab, int64_t bos, int64_t eos) {
  std::vector<Special> out;
  if (bos >= 0) out.emplace_back(bos, kBos);
  if (eos >= 0) out.emplace_back(eos, kEos);
  int64_t id = vocab - 1;
  for (const std::string_view role : {kAssistant, kUser}) {
    while (id == bos || id == eos) --id;
    out.emplace_back(id--, role);
  }
  return out;
}

JsonOut AddedTokens(const std::vector<Special>& specials) {
  JsonOut out = JsonOut::array();
  for (const auto& [id, text] : specials)
    out.push_back({{"id", id},
                   {"content", text},
                   {"single_word", false},
                   {"lstrip", false},
                   {"rstrip", false},
                   {"normalized", false},
                   {"special", true}});
  return out;
}

// Token texts to ids: the words fill the ids that the special tokens leave.
JsonOut Vocabulary(const std::vector<std::string>& words, const std::vector<Special>& specials) {
  JsonOut::object_t out;  // a vector: operator[] would search it for every word
  for (const auto& [id, text] : specials) out.emplace_back(std::string(text), id);
  int64_t id = 0;
  const auto taken = [&] {
    for (const Special& special : specials)
      if (special.first == id) return true;
    return false;
  };
  for (const std::string& word : words) {
    while (taken()) ++id;
    out.emplace_back(word, id++);
  }
  return out;
}

JsonOut PreTokenizer() {
  const JsonOut split = {
      {"type", "Split"},
      {"pattern", {{"Regex", R"( ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"}}},
      {"behavior", "Isolated"},
      {"invert", false}};
  const JsonOut bytes = {{"type", "ByteLevel"},
                         {"add_prefix_space", false},
                         {"trim_offsets", true},
                         {"use_regex", false}};
  return {{"type", "Sequence"}, {"pretokenizers", JsonOut::array({split, bytes})}};
}

std::string ChatTemplate(bool bos, bool eos) {
  return fmt::format(
      "{}{{% for message in messages %}}{{% if message['role'] == 'user' %}}{{{{ '{}' + "
      "message['content'] }}}}{{% elif message['role'] == 'assistant' %}}{{{{ '{}' + "
      "message['content']{} }}}}{{% else %}}{{{{ message['content'] }}}}{{% endif %}}{{% endfor "
      "%}}{{% if add_generation_prompt %}}{{{{ '{}' }}}}{{% endif %}}",
      bos ? "{{ bos_token }}" : "", kUser, kAssistant, eos ? " + eos_token" : "", kAssistant);
}

}  // namespace

std::optional<SynthTokenizer> MakeSynthTokenizer(int64_t vocab, int64_t bos, int64_t eos) {
  const std::vector<Special> specials = Specials(vocab, bos, eos);
  const int64_t words = vocab - static_cast<int64_t>(specials.size());
  if (words < kBytes || words > kMostWords) return std::nullopt;
  const Words made(words);
  const JsonOut tokenizer = {{"version", "1.0"},
                             {"added_tokens", AddedTokens(specials)},
                             {"normalizer", nullptr},
                             {"pre_tokenizer", PreTokenizer()},
                             {"decoder", {{"type", "ByteLevel"}}},
                             {"model",
                              {{"type", "BPE"},
                               {"vocab", Vocabulary(made.tokens(), specials)},
                               {"merges", made.merges()}}}};
  JsonOut config = {{"add_bos_token", bos >= 0},
                    {"chat_template", ChatTemplate(bos >= 0, eos >= 0)}};
  if (bos >= 0) config["bos_token"] = kBos;
  if (eos >= 0) config["eos_token"] = kEos;
  return SynthTokenizer{Dump(tokenizer) + "\n", Dump(config, 2) + "\n"};
}

}  // namespace latte

#include "src/text/pretokenize_json.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr size_t kMaxSteps = 64;

tl::unexpected<Error> NotSupported(const Json& at, std::string_view expected,
                                   std::string_view found) {
  return Unsupported(
      fmt::format("{}: expected {}, found '{}', which Latte does not do; ids would "
                  "be wrong without it",
                  at.path(), expected, Printable(found)));
}

// Appends the members of a Sequence, with nested Sequences flattened in place. Any other node is
// appended itself.
Status AddMembers(const Json& node, std::string_view list_key, std::vector<Json>* members) {
  LATTE_ASSIGN_OR_RETURN(const std::string type, node.GetString("type"));
  if (type != "Sequence") {
    members->push_back(node);
    return {};
  }
  LATTE_ASSIGN_OR_RETURN(const Json list, node.Get(list_key));
  if (!list.is_array() || list.size() + members->size() > kMaxSteps)
    return Corrupt(fmt::format("{}: expected an array of at most {}", list.path(), kMaxSteps));
  // The JSON reader limits the depth.
  for (size_t i = 0; i < list.size(); ++i)
    LATTE_RETURN_IF_ERROR(AddMembers(list.At(i), list_key, members));
  return {};
}

Result<std::vector<Json>> Members(const Json& node, std::string_view list_key) {
  std::vector<Json> members;
  LATTE_RETURN_IF_ERROR(AddMembers(node, list_key, &members));
  return members;
}

Result<SplitBehavior> ReadBehavior(const Json& split) {
  LATTE_ASSIGN_OR_RETURN(const std::string name, split.GetString("behavior"));
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return NotSupported(split, "a behavior of Split", name);
}

Result<PreTokenizeStep> ReadSplit(const Json& split) {
  PreTokenizeStep step;
  LATTE_ASSIGN_OR_RETURN(const Json pattern, split.Get("pattern"));
  const bool regex = pattern.Find("Regex").has_value();
  step.kind = regex ? PreTokenizeStep::Kind::kRegex : PreTokenizeStep::Kind::kLiteral;
  LATTE_ASSIGN_OR_RETURN(step.pattern, pattern.GetString(regex ? "Regex" : "String"));
  LATTE_ASSIGN_OR_RETURN(step.behavior, ReadBehavior(split));
  LATTE_ASSIGN_OR_RETURN(step.invert, split.GetBoolOr("invert", false));
  return step;
}

Result<PreTokenizeStep> ReadDigits(const Json& digits) {
  LATTE_ASSIGN_OR_RETURN(const bool single, digits.GetBoolOr("individual_digits", false));
  return PreTokenizeStep{
      .pattern = R"(\p{N})",
      .behavior = single ? SplitBehavior::kIsolated : SplitBehavior::kContiguous};
}

Status ReadByteLevel(const Json& byte_level, std::vector<PreTokenizeStep>* steps) {
  LATTE_ASSIGN_OR_RETURN(const bool space, byte_level.GetBoolOr("add_prefix_space", true));
  LATTE_ASSIGN_OR_RETURN(const bool regex, byte_level.GetBoolOr("use_regex", true));
  if (space) steps->push_back({.kind = PreTokenizeStep::Kind::kPrefixSpace, .pattern = {}});
  if (regex) steps->push_back({.pattern = std::string(kGpt2Pattern)});
  return {};
}

Status ReadPreTokenizer(const Json& root, std::vector<PreTokenizeStep>* steps) {
  LATTE_ASSIGN_OR_RETURN(const Json node, root.Get("pre_tokenizer"));
  LATTE_ASSIGN_OR_RETURN(const std::vector<Json> members, Members(node, "pretokenizers"));
  bool byte_level = false;
  for (const Json& member : members) {
    LATTE_ASSIGN_OR_RETURN(const std::string type, member.GetString("type"));
    // After ByteLevel, a step would see the byte-level alphabet instead of the text.
    if (byte_level) return NotSupported(member, "ByteLevel as the last step", type);
    LATTE_RETURN_IF_ERROR(ReadPreTokenizeStep(member, steps));
    byte_level = type == "ByteLevel";
  }
  if (!byte_level)
    return Unsupported(
        fmt::format("{}: expected a ByteLevel step at the end, found none; only "
                    "byte-level BPE is supported",
                    node.path()));
  return {};
}

Status CheckNormalizer(const Json& root) {
  const auto node = root.Find("normalizer");
  if (!node) return {};
  LATTE_ASSIGN_OR_RETURN(const std::vector<Json> members, Members(*node, "normalizers"));
  if (members.empty()) return {};
  LATTE_ASSIGN_OR_RETURN(const std::string type, members.front().GetString("type"));
  return NotSupported(members.front(), "no normalizer", type);
}

Result<std::vector<Json>> Decoders(const Json& root) {
  LATTE_ASSIGN_OR_RETURN(const Json node, root.Get("decoder"));
  return Members(node, "decoders");
}

// SentencePiece's kind is told by its decoder, the only one that reads <0x0A>.
bool IsSentencePiece(const std::vector<Json>& decoders) {
  return std::any_of(decoders.begin(), decoders.end(), [](const Json& member) {
    return member.GetStringOr("type", "").value_or("") == "ByteFallback";
  });
}

// A Replace of one text by another.
Result<bool> Replaces(const Json& member, std::string_view from, std::string_view to) {
  LATTE_ASSIGN_OR_RETURN(const std::string type, member.GetString("type"));
  if (type != "Replace") return false;
  LATTE_ASSIGN_OR_RETURN(const Json pattern, member.Get("pattern"));
  LATTE_ASSIGN_OR_RETURN(const std::string text, pattern.GetStringOr("String", ""));
  LATTE_ASSIGN_OR_RETURN(const std::string content, member.GetString("content"));
  return text == from && content == to;
}

// Replace, ByteFallback, Fuse and perhaps Strip, in this order.
Status ReadSentencePieceDecoders(const std::vector<Json>& members, TokenizerPipeline* out) {
  constexpr std::string_view kOrder[] = {"Replace", "ByteFallback", "Fuse", "Strip"};
  for (size_t i = 0; i < members.size(); ++i) {
    const Json& member = members[i];
    LATTE_ASSIGN_OR_RETURN(const std::string type, member.GetString("type"));
    bool fits = i < std::size(kOrder) && type == kOrder[i];
    if (fits && i == 0) {
      LATTE_ASSIGN_OR_RETURN(fits, Replaces(member, kMetaspace, " "));
    }
    if (fits && i == 3) {
      LATTE_ASSIGN_OR_RETURN(const std::string content, member.GetString("content"));
      LATTE_ASSIGN_OR_RETURN(const int64_t start, member.GetInt("start"));
      LATTE_ASSIGN_OR_RETURN(const int64_t stop, member.GetInt("stop"));
      fits = content == " " && start == 1 && stop == 0;
      out->strips_space = fits;
    }
    if (!fits)
      return NotSupported(member, "Replace of ▁ by a space, ByteFallback, Fuse, Strip of one space",
                          type);
  }
  if (members.size() < 3)
    return NotSupported(members.back(), "Replace, ByteFallback and Fuse",
                        fmt::format("{} decoders", members.size()));
  return {};
}

// Prepend and Replace, or none.
Status ReadSentencePieceNormalizer(const Json& root, TokenizerPipeline* out) {
  const auto node = root.Find("normalizer");
  if (!node) return {};
  LATTE_ASSIGN_OR_RETURN(const std::vector<Json> members, Members(*node, "normalizers"));
  PreTokenizeStep step{.kind = PreTokenizeStep::Kind::kMetaspace, .pattern = {}};
  for (const Json& member : members) {
    LATTE_ASSIGN_OR_RETURN(const std::string type, member.GetString("type"));
    LATTE_ASSIGN_OR_RETURN(const bool replaces, Replaces(member, " ", kMetaspace));
    LATTE_ASSIGN_OR_RETURN(const std::string prefix, member.GetStringOr("prepend", ""));
    const bool prepends = type == "Prepend" && prefix == kMetaspace;
    const bool in_order = !out->normalizes && step.prefix == PreTokenizeStep::Prefix::kNever;
    if (replaces && !out->normalizes)
      out->normalizes = true;
    else if (prepends && in_order)
      step.prefix = PreTokenizeStep::Prefix::kAlways;
    else
      return NotSupported(member, "Prepend of ▁ and then Replace of a space by ▁", type);
  }
  if (out->normalizes)
    out->steps.push_back(std::move(step));
  else if (!members.empty())
    return NotSupported(members.back(), "Replace of a space by ▁ at the end", "none");
  return {};
}

Result<PreTokenizeStep> ReadMetaspace(const Json& node) {
  LATTE_ASSIGN_OR_RETURN(const std::string type, node.GetString("type"));
  LATTE_ASSIGN_OR_RETURN(const std::string written,
                         node.GetStringOr("replacement", std::string(kMetaspace)));
  if (type != "Metaspace" || written != kMetaspace)
    return NotSupported(node, "Metaspace with ▁, or none",
                        type == "Metaspace" ? std::string_view(written) : type);
  PreTokenizeStep step{.kind = PreTokenizeStep::Kind::kMetaspace, .pattern = {}};
  LATTE_ASSIGN_OR_RETURN(const bool old_prefix, node.GetBoolOr("add_prefix_space", true));
  LATTE_ASSIGN_OR_RETURN(const std::string scheme,
                         node.GetStringOr("prepend_scheme", old_prefix ? "always" : "never"));
  if (scheme == "always")
    step.prefix = PreTokenizeStep::Prefix::kIfAbsent;
  else if (scheme == "first")
    step.prefix = PreTokenizeStep::Prefix::kIfAbsentAtStart;
  else if (scheme != "never")
    return NotSupported(node, "a prepend_scheme of always, first or never", scheme);
  LATTE_ASSIGN_OR_RETURN(const bool split, node.GetBoolOr("split", true));
  if (split) step.cut = PreTokenizeStep::Cut::kBeforeEach;
  return step;
}

// "▁" is written by a normalizer or by the pre-tokenizer.
Status ReadSentencePiece(const Json& root, const std::vector<Json>& decoders,
                         TokenizerPipeline* out) {
  out->sentencepiece = true;
  LATTE_RETURN_IF_ERROR(ReadSentencePieceDecoders(decoders, out));
  LATTE_RETURN_IF_ERROR(ReadSentencePieceNormalizer(root, out));
  const auto node = root.Find("pre_tokenizer");
  if (!node && !out->normalizes)
    return NotSupported(root, "a normalizer or a pre_tokenizer that writes ▁ for spaces", "none");
  if (!node) return {};
  if (out->normalizes) return NotSupported(*node, "no pre_tokenizer after the normalizer", "one");
  LATTE_ASSIGN_OR_RETURN(PreTokenizeStep step, ReadMetaspace(*node));
  out->steps.push_back(std::move(step));
  return {};
}

Status CheckDecoder(const std::vector<Json>& members) {
  bool byte_level = false;
  for (const Json& member : members) {
    LATTE_ASSIGN_OR_RETURN(const std::string type, member.GetString("type"));
    if (byte_level && type == "Fuse") continue;  // the pieces are fused already
    if (byte_level || type != "ByteLevel")
      return NotSupported(member, "one ByteLevel decoder", type);
    byte_level = true;
  }
  return {};
}

// The text of the token that a piece of a template adds, if it adds one.
Result<std::optional<std::string>> TokenOfPiece(const Json& special,
                                                const std::optional<Json>& tokens) {
  LATTE_ASSIGN_OR_RETURN(const std::string name, special.GetString("id"));
  const std::optional<Json> entry = tokens ? tokens->Find(name) : std::nullopt;
  const std::optional<Json> texts = entry ? entry->Find("tokens") : std::nullopt;
  if (!texts) return std::optional(name);
  if (!texts->is_array() || texts->size() > 1)
    return NotSupported(*texts, "at most one token", fmt::format("{}", texts->size()));
  if (texts->size() == 0) return std::optional<std::string>();
  LATTE_ASSIGN_OR_RETURN(std::string text, texts->At(0).AsString());
  return std::optional(std::move(text));
}

// Accepts only templates that put nothing or one special token before the text: {Sequence A}, or
// {SpecialToken} {Sequence A}.
Result<std::optional<std::string>> ReadTemplate(const Json& node) {
  LATTE_ASSIGN_OR_RETURN(const Json single, node.Get("single"));
  const auto refuse = [&] {
    return NotSupported(single, "the text, with at most one special token before it",
                        "another template");
  };
  if (!single.is_array()) return refuse();
  std::optional<std::string> before;
  bool text = false;
  for (size_t i = 0; i < single.size(); ++i) {
    if (const auto sequence = single.At(i).Find("Sequence")) {
      LATTE_ASSIGN_OR_RETURN(const std::string which, sequence->GetString("id"));
      if (which != "A" || text) return refuse();
      text = true;
    } else if (const auto special = single.At(i).Find("SpecialToken")) {
      LATTE_ASSIGN_OR_RETURN(auto token, TokenOfPiece(*special, node.Find("special_tokens")));
      if (!token) continue;
      if (text || before) return refuse();
      before = std::move(token);
    } else {
      return refuse();
    }
  }
  if (!text) return refuse();
  return before;
}

Status ReadPostProcessor(const Json& root, std::optional<std::string>* template_bos) {
  const auto node = root.Find("post_processor");
  if (!node) return {};
  LATTE_ASSIGN_OR_RETURN(const std::vector<Json> members, Members(*node, "processors"));
  for (const Json& member : members) {
    LATTE_ASSIGN_OR_RETURN(const std::string type, member.GetString("type"));
    if (type == "ByteLevel") continue;  // affects offsets only
    if (type != "TemplateProcessing")
      return NotSupported(member, "ByteLevel or TemplateProcessing", type);
    LATTE_ASSIGN_OR_RETURN(auto before, ReadTemplate(member));
    if (!before) continue;
    if (template_bos->has_value())
      return NotSupported(member, "one template that adds a token", "a second one");
    *template_bos = std::move(before);
  }
  return {};
}

}  // namespace

Result<TokenizerPipeline> ReadPipeline(const Json& root) {
  TokenizerPipeline out;
  const Result<std::vector<Json>> decoders = Decoders(root);
  if (decoders && IsSentencePiece(*decoders)) {
    LATTE_RETURN_IF_ERROR(ReadSentencePiece(root, *decoders, &out));
    LATTE_RETURN_IF_ERROR(ReadPostProcessor(root, &out.template_bos));
    return out;
  }
  LATTE_RETURN_IF_ERROR(CheckNormalizer(root));
  LATTE_RETURN_IF_ERROR(ReadPreTokenizer(root, &out.steps));
  LATTE_RETURN_IF_ERROR(ReadPostProcessor(root, &out.template_bos));
  if (!decoders) return tl::unexpected(decoders.error());
  LATTE_RETURN_IF_ERROR(CheckDecoder(*decoders));
  return out;
}

Status ReadPreTokenizeStep(const Json& member, std::vector<PreTokenizeStep>* steps) {
  LATTE_ASSIGN_OR_RETURN(const std::string type, member.GetString("type"));
  if (type == "ByteLevel") return ReadByteLevel(member, steps);
  if (type != "Split" && type != "Digits")
    return NotSupported(member, "Split, Digits or ByteLevel", type);
  LATTE_ASSIGN_OR_RETURN(PreTokenizeStep step,
                         type == "Split" ? ReadSplit(member) : ReadDigits(member));
  steps->push_back(std::move(step));
  return {};
}

}  // namespace latte

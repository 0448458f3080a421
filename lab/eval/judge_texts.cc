#include "lab/eval/judge_texts.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/json.h"
#include "src/base/json_out.h"
#include "src/base/strings.h"

namespace latte {
namespace {

constexpr size_t kMaxLineBytes = 1 << 20;
constexpr size_t kMaxRefused = 1000;  // refused texts that are kept
constexpr size_t kRefusedInTable = 3;

// `text` without the marks at its ends, whatever their number and order.
std::string_view WithoutMarks(std::string_view text, std::span<const std::string> marks) {
  for (size_t before = text.size() + 1; text.size() < before;) {
    before = text.size();
    for (const std::string& mark : marks) {
      if (text.starts_with(mark)) text.remove_prefix(mark.size());
      if (text.ends_with(mark)) text.remove_suffix(mark.size());
    }
  }
  return text;
}

Result<std::string> ReadTextLine(std::string_view line, const std::string& where) {
  if (line.size() > kMaxLineBytes)
    return Corrupt(
        fmt::format("{}: expected at most {} bytes, found {}", where, kMaxLineBytes, line.size()));
  const auto read = [&]() -> Result<std::string> {
    LATTE_ASSIGN_OR_RETURN(const Json json, Json::Parse(line, where));
    return json.GetString("text");
  };
  return read().map_error([](Error error) {
    error.message += "; write one object {\"text\": …} on each line";
    return error;
  });
}

}  // namespace

Result<JudgedTexts> JudgeTexts(const StoryGrammar& grammar, std::string_view lines,
                               const std::string& where, std::span<const std::string> marks) {
  JudgedTexts out;
  out.report.total.name = "stories";
  out.report.what = "given texts that obey the grammar";
  for (int64_t number = 1; !lines.empty(); ++number) {
    const std::string_view line = TakePiece(&lines, '\n');
    if (IsBlank(line)) continue;
    LATTE_ASSIGN_OR_RETURN(const std::string text,
                           ReadTextLine(line, fmt::format("{}: line {}", where, number)));
    StoryVerdict verdict = grammar.Parse(WithoutMarks(text, marks));
    ++out.report.total.items;
    ++out.report.total.count;
    if (verdict.accepted)
      ++out.report.total.passed;
    else if (out.refused.size() < kMaxRefused)
      out.refused.push_back({number, std::move(verdict)});
  }
  if (out.report.total.items == 0)
    return InvalidArgument(
        fmt::format("{}: expected {{\"text\": …}} on each line, found no text", where));
  return out;
}

JsonOut JudgedJson(const JudgedTexts& judged) {
  JsonOut stories = TallyJson(judged.report.total);
  JsonOut refused = JsonOut::array();
  for (const auto& [line, verdict] : judged.refused)
    refused.push_back({{"line", line}, {"byte", verdict.at}, {"reason", verdict.why}});
  stories["refused"] = std::move(refused);
  return {{judged.report.total.name, std::move(stories)}};
}

std::string JudgedTable(const JudgedTexts& judged) {
  std::string out = EvalTable({judged.report});
  const size_t shown = std::min(judged.refused.size(), kRefusedInTable);
  for (size_t i = 0; i < shown; ++i)
    out += fmt::format("line {}: {}\n", judged.refused[i].line, judged.refused[i].verdict.why);
  const EvalTally& total = judged.report.total;
  const int64_t others = total.count - total.passed - static_cast<int64_t>(shown);
  if (others > 0)
    out +=
        fmt::format("{} more texts are refused; --json lists the first {}\n", others, kMaxRefused);
  return out;
}

}  // namespace latte

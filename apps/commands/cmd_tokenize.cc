// latte tokenize: converts text to ids and back.
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "apps/flags/command.h"
#include "apps/terminal/answer/answer_printer.h"
#include "apps/terminal/screen.h"
#include "src/api/completions/logprobs.h"
#include "src/base/json_out.h"
#include "src/checkpoint/model_files.h"
#include "src/checkpoint/model_path.h"

namespace latte {
namespace {

struct TokenizeFlags {
  std::string model = "tiny";
  std::optional<std::string> text;
  std::optional<std::string> file;
  std::optional<std::string> decode;
  bool special = false;
  bool bos = false;
  bool json = false;
};

Status DecodeIds(const TokenizeFlags& flags, const Tokenizer& tokenizer) {
  LATTE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, ParseIds(*flags.decode));
  LATTE_ASSIGN_OR_RETURN(const std::string text, tokenizer.Decode(ids));
  if (!flags.json) {
    AnswerPrinter printer;
    LATTE_RETURN_IF_ERROR(printer.Add(text + "\n"));
    return printer.Finish();
  }
  return Print(Dump(JsonOut{{"text", text}, {"ids", ids}}) + "\n");
}

Status TokenizeCommand(const TokenizeFlags& flags) {
  LATTE_ASSIGN_OR_RETURN(const std::string dir, ResolveModelPath(flags.model));
  LATTE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, LoadTokenizer(dir));
  const int given = (flags.text ? 1 : 0) + (flags.file ? 1 : 0) + (flags.decode ? 1 : 0);
  if (given > 1)
    return InvalidArgument(
        fmt::format("expected at most one of --text, --file and --decode, found {}", given));
  if (flags.decode) return DecodeIds(flags, tokenizer);

  std::string text;
  if (flags.text) {
    text = *flags.text;
  } else {
    if (!flags.file && IsTerminal(STDIN_FILENO))
      Tell("Type the text and end it with Ctrl-D (or give it with --text):\n");
    LATTE_ASSIGN_OR_RETURN(text, ReadText(flags.file.value_or("-")));
  }
  LATTE_ASSIGN_OR_RETURN(
      const std::vector<int32_t> ids,
      tokenizer.Encode(text, {.add_bos = flags.bos, .parse_special = flags.special}));
  if (!flags.json) return Print(fmt::format("{}\n", fmt::join(ids, ",")));
  JsonOut tokens = JsonOut::array();
  for (const int32_t id : ids) tokens.push_back(TokenText(tokenizer, id));
  return Print(Dump(JsonOut{{"ids", ids}, {"tokens", tokens}, {"count", ids.size()}}) + "\n");
}

}  // namespace

Command AddTokenize(const FlagSet& app) {
  auto flags = std::make_shared<TokenizeFlags>();
  const FlagSet sub = app.AddCommand("tokenize", "Convert text to token ids, and back");
  sub.Add("MODEL", flags->model, "model, or a folder with a tokenizer (default: tiny)");
  sub.Add("-p,--text", flags->text, "the text (default: read from standard input)");
  sub.Add("-f,--file", flags->file, "the text of a file").Value("FILE");
  sub.Add("--decode", flags->decode, "token ids to convert to text: 1,2,3");
  sub.AddSwitch("--special", flags->special, "text of a special token becomes that token");
  sub.AddSwitch("--bos", flags->bos, "put the start token first");
  sub.Group("Output").AddSwitch("--json", flags->json, "one JSON object: ids, tokens, count");
  return {sub, [flags] { return TokenizeCommand(*flags); }};
}

}  // namespace latte

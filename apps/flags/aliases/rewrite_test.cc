#include <gtest/gtest.h>

#include "apps/flags/aliases/program_test.h"
#include "apps/flags/command_words.h"

namespace latte::rewrite_test {
namespace {

using Words = std::vector<std::string>;

struct Read {
  Words words;  // arguments, and names of options with their values
  Words notes;
};

Read Rewritten(Words args, const std::string& command = "serve") {
  Words line = {"latte", command};
  line.insert(line.end(), args.begin(), args.end());
  const CommandInfo program = TestProgram();
  const Result<CheckedWords> got = CheckWords(line, program);
  if (!got) return {{"error: " + got.error().message}, {}};
  Read out{{}, got->notes};
  for (const auto& [option, value] : got->values) {
    if (option.starts_with('-')) out.words.push_back(option);
    if (FindOption(*got->command, option) == nullptr ||
        !FindOption(*got->command, option)->value.empty())
      out.words.push_back(value);
  }
  return out;
}
Words Args(Words args) { return Rewritten(std::move(args)).words; }
// The error, without the command and where to look.
std::string ErrorOf(Words args) {
  const Words got = Args(std::move(args));
  if (got.size() != 1 || !got[0].starts_with("error: ")) return "none";
  std::string out = got[0].substr(7);
  if (out.starts_with("latte serve: ")) out.erase(0, 13);
  return out.substr(0, out.find("; see latte serve --help"));
}

TEST(Rewrite, TheCommandThatVllmDocuments) {
  const Read got = Rewritten({"--model", "DIR", "--tensor-parallel-size", "1", "--block-size", "64",
                              "--max-model-len", "131072", "--trust-remote-code",
                              "--kv-cache-dtype", "fp8_e4m3"});
  EXPECT_EQ(got.words, (Words{"DIR", "--tp", "1", "--page-tokens", "64", "--context", "131072",
                              "--cache-dtype", "fp8"}));
  EXPECT_EQ(got.notes, (Words{"read as --tp 1 --page-tokens 64 --context 131072 --cache-dtype fp8",
                              "--trust-remote-code is ignored: no code of a checkpoint is ever "
                              "run"}));
}

TEST(Rewrite, OurFlagsAndOtherCommandsStay) {
  const Words ours = {"tiny", "--port", "1", "--context", "8", "--seed", "5"};
  EXPECT_EQ(Args(ours), ours);
  EXPECT_TRUE(Rewritten(ours).notes.empty());
  EXPECT_EQ(Rewritten({"-i", "x", "-o", "y", "-c", "8"}, "batch").words,
            (Words{"-i", "x", "-o", "y", "--context", "8"}));
  EXPECT_EQ(Args({}), Words{});
  EXPECT_EQ(Args({"--", "-c"}), Words{"-c"});
}

TEST(Rewrite, SpellingsOfAFlag) {
  for (const Words& line :
       {Words{"--max-model-len", "8"}, Words{"--max-model-len=8"}, Words{"--max_model_len=8"}})
    EXPECT_EQ(Args(line), (Words{"--context", "8"}));
  EXPECT_EQ(Args({"--cache_dir=a_b"}), (Words{"--cache-dir", "a_b"}));
}

TEST(Rewrite, ValuesThatLookLikeFlags) {
  EXPECT_EQ(Args({"--random-seed", "-5"}), (Words{"--seed", "-5"}));
  EXPECT_EQ(ErrorOf({"--max-model-len", "--port", "1"}),
            "--max-model-len: expected a value, found none");
  EXPECT_EQ(ErrorOf({"--max-model-len"}), "--max-model-len: expected a value, found none");
  EXPECT_EQ(ErrorOf({"--disable-mla=yes"}), "--disable-mla: expected no value, found 'yes'");
}

TEST(Rewrite, CommonNamesAreTakenByAllCommands) {
  const auto run = [](const Words& args) { return Rewritten(args, "run"); };
  EXPECT_EQ(run({"-m", "x", "--temp", "0.5", "--ctx-size", "4K"}).words,
            (Words{"x", "--temperature", "0.5", "--context", "4096"}));
  for (const char* name : {"--n-predict", "--predict", "--max-tokens", "--max_tokens"})
    EXPECT_EQ(run({name, "8"}).words, (Words{"--max-new-tokens", "8"})) << name;
  EXPECT_EQ(
      run({"-b", "8", "--chunk", "9", "--batch-size", "10"}).words,
      (Words{"--max-batch-tokens", "8", "--max-batch-tokens", "9", "--max-batch-tokens", "10"}));
  EXPECT_TRUE(run({"--temp", "1", "-c", "8"}).notes.empty());
  EXPECT_EQ(run({"--port", "1"}).words,  // of serve only
            Words{"error: latte run: unknown option --port; see latte run --help"});
}

TEST(Rewrite, WhatMeansNothingHereIsIgnoredByAllCommandsWithAModel) {
  const Read got =
      Rewritten({"x", "-ngl", "99", "--mlock", "--no-mmap", "-fa", "on", "-p", "y"}, "run");
  EXPECT_EQ(got.words, (Words{"x", "-p", "y"}));
  ASSERT_EQ(got.notes.size(), 4U);
  EXPECT_EQ(got.notes[0], "-ngl is ignored: --device chooses the CPUs or a GPU");
}

// An older name of --context, where --max-tokens cannot mean the length of an answer.
TEST(Rewrite, MaxTokensIsTheContextWhereThereIsNoLengthOfAnswers) {
  for (const char* command : {"serve", "batch"})
    EXPECT_EQ(Rewritten({"--max-tokens", "8"}, command).words, (Words{"--context", "8"}));
}

TEST(Rewrite, MinusOneIsARandomSeed) {
  const auto seed = [] {
    const Words got = Rewritten({"--seed", "-1"}, "run").words;
    return got.size() == 2 && got[0] == "--seed" ? got[1] : "none";
  };
  const std::string first = seed();
  EXPECT_EQ(first.find_first_not_of("0123456789"), std::string::npos) << first;
  EXPECT_NE(first, seed());
  for (const char* name : {"--seed", "-s", "--random-seed"})  // serve takes it: one per request
    EXPECT_EQ(Args({name, "-1"}), (Words{"--seed", "-1"})) << name;
  EXPECT_EQ(Args({"-s", "7"}), (Words{"--seed", "7"}));
}

TEST(Rewrite, ValuesAreNotNames) {
  EXPECT_EQ(Rewritten({"-p", "--temp", "-n", "1"}, "run").words,
            (Words{"-p", "--temp", "-n", "1"}));
}

// vLLM takes the members of an object one by one.
TEST(Rewrite, MembersOfObjects) {
  constexpr const char* kDrafts = ": not supported: say --draft-tokens and --drafter instead";
  for (const Words& line :
       {Words{"--speculative-config.method", "mtp"},
        Words{"--speculative-config.num_speculative_tokens=1"},
        Words{"--speculative_config.draft_model_config.model", "x"},
        Words{"--speculative-config", "{}"}, Words{"-sc.method", "mtp"}, Words{"-sc.method=mtp"},
        Words{"--speculative-algo", "NEXTN"}, Words{"--speculative-num-steps", "1"}})
    EXPECT_TRUE(ErrorOf(line).ends_with(kDrafts)) << line[0] << ": " << ErrorOf(line);
  EXPECT_EQ(ErrorOf({"--speculative-config.method", "mtp"}).substr(0, 29),
            "--speculative-config.method: ");
  for (const Words& line :
       {Words{"--compilation-config.pass_config.fuse", "true"}, Words{"-cc.mode=3"},
        Words{"-O.mode", "3"}, Words{"-O.mode=3"}, Words{"-O3"}, Words{"-O", "3"},
        Words{"--compilation-config.cudagraph_capture_sizes+", "1"},
        Words{"--structured-outputs-config.backend", "xgrammar"},
        Words{"--limit-mm-per-prompt.image", "0"}}) {
    const Read got = Rewritten(line);
    EXPECT_EQ(got.words, Words{}) << line[0];
    ASSERT_EQ(got.notes.size(), 1U) << line[0];
    EXPECT_NE(got.notes[0].find(" is ignored: "), std::string::npos) << got.notes[0];
  }
  for (const char* refused :
       {"--hf-overrides.rope_scaling.factor", "--override-generation-config.temperature",
        "--kv-transfer-config.kv_role", "--structured-outputs-config.disable_any_whitespace"})
    EXPECT_NE(ErrorOf({refused, "1"}).find(": not supported: "), std::string::npos) << refused;
  EXPECT_EQ(ErrorOf({"--speculative-config.method"}),
            "--speculative-config.method: expected a value, found none");
}

// A dot alone makes no member, and what is no object has none.
TEST(Rewrite, OtherDotsStay) {
  for (const char* name : {"--no-such-config.x", "--port.x", "--compilation-config.", "-m.x"})
    EXPECT_TRUE(ErrorOf({name, "1"}).starts_with(std::string("unknown option ") + name)) << name;
  EXPECT_EQ(Args({"-c.5"}), (Words{"-c", ".5"}));
  EXPECT_EQ(Args({"org.x/my_model.q_8=a_b"}), Words{"org.x/my_model.q_8=a_b"});
}

TEST(Rewrite, Numbers) {
  const auto tokens = [](const std::string& value) { return Args({"-c", value}); };
  EXPECT_EQ(tokens("128k"), (Words{"--context", "128000"}));
  EXPECT_EQ(tokens("128K"), (Words{"--context", "131072"}));
  EXPECT_EQ(tokens("25.6k"), (Words{"--context", "25600"}));
  EXPECT_EQ(tokens("0"), (Words{"--context", "0"}));
  EXPECT_EQ(tokens("auto"), Words{});
  EXPECT_EQ(tokens("-1"), Words{});
  for (const char* bad : {"", "1.5", "-2", "k", "nan", "inf", "1e30", "1kk", "0x10", "8 "})
    EXPECT_EQ(ErrorOf({"-c", bad}),
              "-c: expected a whole number, such as 131072, 128K or 131k, found '" +
                  std::string(bad) + "'");
}

TEST(Rewrite, ErrorsOfUsageNameTheCommand) {
  EXPECT_EQ(Args({"-c", "x"}), Words{"error: latte serve: -c: expected a whole number, such as "
                                     "131072, 128K or 131k, found 'x'; see latte serve --help"});
}

TEST(Rewrite, Ranks) {
  for (const char* name : {"--tensor-parallel-size", "-tp", "--tp-size"})
    EXPECT_EQ(Args({name, "8"}), (Words{"--tp", "8"}));
  EXPECT_EQ(Args({"--data-parallel-size", "2", "-tp", "4"}), (Words{"--dp", "2", "--tp", "4"}));
  for (const char* name : {"--decode-context-parallel-size", "-dcp"})
    EXPECT_EQ(Args({name, "2"}), (Words{"--dcp", "2"}));
  EXPECT_EQ(Args({"-pp", "1"}), Words{});
  EXPECT_EQ(
      ErrorOf({"-pp", "8"}),
      "-pp: expected 1, because only --tp, --dp and --ep divide a model among ranks, found 8");
  EXPECT_EQ(ErrorOf({"-pp", "0"}), "-pp: expected 1, found '0'");
  EXPECT_EQ(ErrorOf({"-pp", "two"}), "-pp: expected 1, found 'two'");
  EXPECT_EQ(ErrorOf({"-pp", "99999999999"}), "-pp: expected 1, found '99999999999'");
}

TEST(Rewrite, Formats) {
  const auto cache = [](const std::string& value) { return Args({"--kv-cache-dtype", value}); };
  EXPECT_EQ(cache("auto"), Words{});
  EXPECT_EQ(cache("bfloat16"), (Words{"--cache-dtype", "bf16"}));
  EXPECT_EQ(cache("q8_0"), (Words{"--cache-dtype", "int8"}));
  EXPECT_EQ(cache("q6"), (Words{"--cache-dtype", "q6"}));
  EXPECT_EQ(ErrorOf({"--kv-cache-dtype", "fp8_e5m2"}),
            "--kv-cache-dtype: expected fp8 (e4m3), found 'fp8_e5m2', which Latte lacks");
  EXPECT_EQ(Args({"--dtype", "half"}), (Words{"--dtype", "f16"}));
  EXPECT_EQ(Args({"--dtype", "auto"}), Words{});
  EXPECT_EQ(Args({"--log-level", "WARNING"}), (Words{"--log-level", "warning"}));
  EXPECT_EQ(Args({"--load-format", "safetensors"}), Words{});
  EXPECT_EQ(ErrorOf({"--load-format", "dummy"}),
            "--load-format: expected safetensors, found 'dummy'");
  EXPECT_EQ(Args({"--device", "auto"}), (Words{"--device", "cpu"}));
  EXPECT_EQ(Args({"-dev", "cuda:1"}), (Words{"--device", "cuda:1"}));
  EXPECT_EQ(Args({"--numa", "distribute"}), (Words{"--numa", "interleave"}));
}

TEST(Rewrite, LlamaCppsSwitchMayHaveAValue) {
  EXPECT_EQ(Args({"-fa", "on", "tiny"}), (Words{"tiny"}));
  EXPECT_EQ(Args({"-fa", "tiny"}), (Words{"tiny"}));
  EXPECT_EQ(Args({"-fa", "--port", "1"}), (Words{"--port", "1"}));
}

TEST(Rewrite, ListsTakeWordsOnlyWhereTheModelIsKnown) {
  const Words names = {"--served-model-name", "a", "--served-model-name", "b"};
  const auto with = [&](Words first, const Words& last) {
    first.insert(first.end(), names.begin(), names.end());
    first.insert(first.end(), last.begin(), last.end());
    return first;
  };
  EXPECT_EQ(Args({"DIR", "--served-model-name", "a", "b", "--port", "1"}),
            with({"DIR"}, {"--port", "1"}));
  EXPECT_EQ(Args({"--served-model-name", "a", "b", "--model", "DIR"}), with({"DIR"}, {}));
  EXPECT_EQ(Args({"--served-model-name", "a", "DIR"}), (Words{"--served-model-name", "a", "DIR"}));
  EXPECT_EQ(Args({"DIR", "-a", "a,b"}), with({"DIR"}, {}));
}

TEST(Rewrite, KeysAreNotShown) {
  const Read got = Rewritten({"DIR", "--api-key", "secret", "second"});
  EXPECT_EQ(got.words, (Words{"DIR", "--api-key", "secret", "--api-key", "second"}));
  EXPECT_TRUE(got.notes.empty());
}

TEST(Rewrite, OneModel) {
  EXPECT_EQ(ErrorOf({"a", "-m", "b"}), "-m: expected one model, found 'a' and 'b'");
  EXPECT_EQ(ErrorOf({"-m", "a", "-m", "b"}), "-m: expected one model, found 'a' and 'b'");
  EXPECT_EQ(ErrorOf({"-m", ""}), "-m: expected a model, found none");
}

}  // namespace
}  // namespace latte::rewrite_test

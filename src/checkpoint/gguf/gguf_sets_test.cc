#include "src/checkpoint/gguf/gguf_sets.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/checkpoint/gguf/gguf_types.h"

namespace latte::gguf_sets_test {
namespace {

using Names = std::vector<std::string>;

// Files of 1, 2, 3… bytes.
std::vector<GgufSet> SetsOf(const Names& paths) {
  std::vector<SizedFile> files;
  for (const std::string& path : paths)
    files.push_back({path, static_cast<int64_t>(files.size()) + 1});
  return GgufSetsOf(files);
}

// The files that `quant` chooses, or the message.
Names Chosen(const Names& paths, const std::string& quant) {
  const auto set = ChooseGgufSet(SetsOf(paths), quant, "org/x");
  return set ? set->files : Names{set.error().message};
}

std::string Why(const Names& paths, const std::string& quant) {
  const auto set = ChooseGgufSet(SetsOf(paths), quant, "org/x");
  EXPECT_FALSE(set) << quant;
  return set ? "" : set.error().message;
}

// The name that users write for the only model of a repository with this file.
std::string NameOf(const std::string& path) {
  const auto sets = SetsOf({path});
  return sets.size() == 1 ? sets.front().name : fmt::format("{} models", sets.size());
}

TEST(GgufSets, TheQuantIsTheEndOfTheName) {
  const std::pair<const char*, const char*> rows[] = {
      {"Moonlight-16B-A3B-Instruct-Q4_K_M.gguf", "Q4_K_M"},
      {"X.Q4_K_M.gguf", "Q4_K_M"},
      {"X.i1-IQ2_XXS.gguf", "IQ2_XXS"},
      {"X-UD-Q4_K_XL-00001-of-00002.gguf", "UD-Q4_K_XL"},
      {"UD-IQ1_S/X-UD-IQ1_S-00001-of-00002.gguf", "UD-IQ1_S"},
      {"X-Q4_K_M/X-Q4_K_M-00001-of-00002.gguf", "Q4_K_M"},
      {"smol-IQ4_KSS/X-smol-IQ4_KSS-00001-of-00002.gguf", "smol-IQ4_KSS"},
      {"Kimi-K2.5-TQ1_0.gguf", "TQ1_0"},
      {"DeepSeek-V3.1-BF16.gguf", "BF16"},
      {"ggml-model-f16.gguf", "f16"},
      {"gpt-mxfp4.gguf", "mxfp4"},
      {"X-MXFP4_MOE.gguf", "MXFP4_MOE"},
      {"my_model_q8_0.gguf", "q8_0"},
      {"X-Q4_0_4_4.gguf", "Q4_0_4_4"},
      {"X-bf16-Q4_K_M.gguf", "Q4_K_M"},
      {"X-Q4_K_M-imat.gguf", "Q4_K_M-imat"},
      {"X-Q4_K_M-imatrix.gguf", "Q4_K_M-imatrix"},
      {"UD-Q4_K_XL.gguf", "UD-Q4_K_XL"},
      {"Q8_0/model-00001-of-00002.gguf", "Q8_0"},
      {"cloud-Q8_0.gguf", "Q8_0"},
      {"seq2seq-16B-v2.gguf", "seq2seq-16B-v2"}};
  for (const auto& [path, quant] : rows) EXPECT_EQ(NameOf(path), quant) << path;
}

TEST(GgufSets, FilesThatGoWithAModelAreNone) {
  for (const char* path :
       {"mmproj-F16.gguf", "MMPROJ-x-Q8_0.gguf", "X.mmproj-Q8_0.gguf", "X-mmproj-f16.gguf",
        "mtp-X-Q8_0.gguf", "imatrix.gguf", "imatrix_unsloth.gguf", "X.imatrix.gguf",
        "X-imatrix.gguf", "imatrix-X-Q8_0.dat", "X.safetensors", "X-Q8_0.GGUF.txt", ".gguf",
        "a/.gguf", "-00001-of-00002.gguf", "", "gguf"})
    EXPECT_EQ(NameOf(path), "0 models") << path;
}

TEST(GgufSets, TheExactQuantWins) {
  const Names all = {"X-UD-Q4_K_M.gguf", "X-Q4_K_M.gguf", "X-Q4_K_M_L.gguf", "X-Q4_K_L.gguf"};
  EXPECT_EQ(Chosen(all, "Q4_K_M"), (Names{"X-Q4_K_M.gguf"}));
  EXPECT_EQ(Chosen(all, "ud-q4_k_m"), (Names{"X-UD-Q4_K_M.gguf"}));
  EXPECT_EQ(Chosen(all, "q4_k_m_l"), (Names{"X-Q4_K_M_L.gguf"}));
  EXPECT_EQ(Chosen(all, "X-Q4_K_M"), (Names{"X-Q4_K_M.gguf"})) << "the whole stem";
  for (const char* part :
       {"K_M", "M", "4_K_M", "Q4", "Q4_K", "-Q4_K_M", "X", "gguf", "Q4_K_M.gguf"})
    EXPECT_NE(Why(all, part).find("expected a GGUF model " + std::string(part)), std::string::npos)
        << part;
}

TEST(GgufSets, AnotherFamilyOfTypesIsNotTaken) {
  EXPECT_EQ(
      Why({"X-UD-Q4_K_M.gguf", "X-Q8_0.gguf", "X-Q2_K.gguf"}, "Q4_K_M"),
      "expected a GGUF model Q4_K_M, found UD-Q4_K_M (1 B), Q8_0 (2 B), Q2_K (3 B); write one "
      "of them after the name, as in org/x:UD-Q4_K_M");
}

TEST(GgufSets, AllPartsInTheirOrder) {
  const Names all = {"Q4_K_M/X-Q4_K_M-00003-of-00003.gguf", "Q8_0/X-Q8_0-00001-of-00002.gguf",
                     "Q4_K_M/X-Q4_K_M-00001-of-00003.gguf", "Q8_0/X-Q8_0-00002-of-00002.gguf",
                     "Q4_K_M/X-Q4_K_M-00002-of-00003.gguf"};
  EXPECT_EQ(Chosen(all, "Q4_K_M"), (Names{all[2], all[4], all[0]}));
  EXPECT_EQ(Chosen(all, "q8_0"), (Names{all[1], all[3]}));
  const auto sets = SetsOf(all);
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[0].bytes, 2 + 4) << "the smallest first";
  EXPECT_EQ(sets[1].bytes, 1 + 3 + 5);
}

TEST(GgufSets, AMissingPartIsNamed) {
  for (const Names& parts : {Names{"X-Q8_0-00001-of-00003.gguf", "X-Q8_0-00003-of-00003.gguf"},
                             Names{"a/X-Q8_0-00003-of-00003.gguf", "a/X-Q8_0-00001-of-00003.gguf"}})
    EXPECT_EQ(Why(parts, "Q8_0"),
              "expected all parts of Q8_0, 'X-Q8_0-00002-of-00003.gguf' is missing");
  EXPECT_NE(Why({"X-Q8_0-00002-of-00002.gguf"}, "").find("'X-Q8_0-00001-of-00002.gguf'"),
            std::string::npos);
  EXPECT_NE(Why({"X-Q8_0-00001-of-99999.gguf"}, "Q8_0").find("'X-Q8_0-00002-of-99999.gguf'"),
            std::string::npos);
}

TEST(GgufSets, ANumberOutOfRangeIsPartOfTheName) {
  EXPECT_EQ(NameOf("X-Q8_0-00003-of-00002.gguf"), "Q8_0-00003-of-00002");
  EXPECT_EQ(NameOf("X-Q8_0-1-of-2.gguf"), "Q8_0-1-of-2");
}

TEST(GgufSets, WithoutAQuantThereMustBeOneModel) {
  EXPECT_EQ(Chosen({"X.gguf", "mmproj-F16.gguf", "README.md"}, ""), (Names{"X.gguf"}));
  EXPECT_EQ(Why({"X-Q8_0.gguf", "X-Q4_K_M.gguf"}, ""),
            "expected one GGUF model, found 2: Q8_0 (1 B), Q4_K_M (2 B); write one of them after "
            "the name, as in org/x:Q8_0");
}

TEST(GgufSets, SeveralModelsOfOneQuant) {
  const Names all = {"a-7b-Q8_0.gguf", "a-70b-Q8_0.gguf", "a-7b-Q2_K.gguf"};
  EXPECT_EQ(Why(all, "q8_0"),
            "expected one GGUF model, found 2: a-7b-Q8_0.gguf (1 B), a-70b-Q8_0.gguf (2 B); write "
            "more of the file's name, as in org/x:a-7b-Q8_0");
  EXPECT_EQ(Chosen(all, "7b-Q8_0"), (Names{"a-7b-Q8_0.gguf"}));
  EXPECT_EQ(Chosen(all, "A-70B-q8_0"), (Names{"a-70b-Q8_0.gguf"}));
  const auto sets = SetsOf(all);
  EXPECT_EQ(sets[0].name, "a-7b-Q8_0") << "the quant tells nothing";
  EXPECT_EQ(sets[2].name, "Q2_K");
  EXPECT_NE(Why({"a/X-Q8_0.gguf", "b/X-Q8_0.gguf"}, "Q8_0").find("--include"), std::string::npos);
}

TEST(GgufSets, AFolderNamesItsModel) {
  const Names all = {"IQ2_KS/X-IQ2_KS.gguf", "tiny-IQ2_KS/X-tiny-IQ2_KS.gguf"};
  EXPECT_EQ(Chosen(all, "tiny-iq2_ks"), (Names{all[1]}));
  EXPECT_EQ(Chosen({"4bit/X.gguf", "8bit/Y.gguf"}, "8bit"), (Names{"8bit/Y.gguf"}));
}

TEST(GgufSets, FilesThatWereCutAreRefusedByName) {
  const Names all = {"X.Q8_0.gguf.part1of2", "X.Q8_0.gguf.part2of2", "X.Q2_K.gguf",
                     "X.Q6_K.gguf-split-a"};
  EXPECT_NE(Why(all, "Q8_0").find("found 'X.Q8_0.gguf.part1of2', a piece of a file"),
            std::string::npos);
  EXPECT_NE(Why(all, "q6_k").find("'X.Q6_K.gguf-split-a'"), std::string::npos);
  EXPECT_EQ(Chosen(all, ""), (Names{"X.Q2_K.gguf"}));
  EXPECT_EQ(Why(all, "Q5_K"),
            "expected a GGUF model Q5_K, found Q2_K (3 B); write one of them "
            "after the name, as in org/x:Q2_K");
  EXPECT_NE(Why({"X.gguf.part1of2"}, "").find("a piece"), std::string::npos);
}

TEST(GgufSets, NamesOfAnyBytes) {
  const std::string long_name(4096, 'Q');
  const Names all = {"\x01\n\xff-Q8_0.gguf",
                     long_name + "-Q8_0.gguf",
                     "////.gguf",
                     "a/../b-Q2_K.gguf",
                     "_.gguf",
                     "----....____.gguf",
                     "Q_Q_Q_.gguf",
                     std::string("\0-Q4_0.gguf", 11)};
  const std::string why = Why(all, "Q8_0");
  EXPECT_LT(why.size(), 600u);
  EXPECT_EQ(why.find('\n'), std::string::npos);
  EXPECT_EQ(Chosen(all, "q2_k"), (Names{"a/../b-Q2_K.gguf"}));
  EXPECT_FALSE(ChooseGgufSet(SetsOf(all), long_name, "org/x"));
  EXPECT_FALSE(ChooseGgufSet({}, "Q8_0", "org/x"));
  Names many;
  for (int i = 0; i < 500; ++i) many.push_back(fmt::format("X-{}.gguf", i));
  EXPECT_NE(Why(many, "").find("found 500"), std::string::npos);
  EXPECT_NE(Why(many, "").find("and 470 more"), std::string::npos);
}

TEST(GgufSets, QuantsOfTypesThatAreNotRead) {
  for (const char* read : {"Q4_K_M", "UD-Q4_K_XL", "iq4_xs", "IQ4_NL", "Q8_0", "Q4_X", "BF16",
                           "f16", "MXFP4_MOE", "Q2_K_L", "Q5_1", "Q4_K_M-imat", "a-model", "", "-"})
    EXPECT_EQ(WhyQuantIsRefused(read), "") << read;
  for (const char* refused :
       {"IQ1_S", "ud-iq2_xxs", "IQ2_M", "IQ3_M", "IQ3_XS", "UD-TQ1_0", "NVFP4", "Q4_0_4_4"})
    EXPECT_NE(WhyQuantIsRefused(refused), "") << refused;
  for (const char* fork : {"IQ4_K", "smol-IQ4_KSS", "Q4_K_R4", "iq5_ks", "IQ2_KL"})
    EXPECT_NE(WhyQuantIsRefused(fork).find("ik_llama.cpp"), std::string_view::npos) << fork;
}

}  // namespace
}  // namespace latte::gguf_sets_test

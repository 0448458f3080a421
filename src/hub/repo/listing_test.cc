#include "src/hub/repo/listing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/hub/repo/selection.h"

namespace latte::listing_test {
namespace {

const std::string kCommit(40, 'a');
const std::string kSha1(40, '1');
const std::string kSha256(64, '2');

std::string Small(const std::string& name) {
  return fmt::format(R"({{"rfilename": "{}", "size": 3, "blobId": "{}"}})", name, kSha1);
}

Result<Listing> Parse(const std::string& siblings) {
  return ParseListing(fmt::format(R"({{"sha": "{}", "siblings": [{}]}})", kCommit, siblings),
                      "listing");
}

std::string Why(const std::string& siblings) {
  const auto listing = Parse(siblings);
  EXPECT_FALSE(listing) << siblings;
  return listing ? "" : listing.error().message;
}

TEST(Listing, SmallAndLargeFiles) {
  const auto listing =
      Parse(Small("config.json") +
            fmt::format(R"(, {{"rfilename": "w.safetensors", "size": 9000000000, "blobId": "{}",
                         "lfs": {{"sha256": "{}", "size": 9000000000, "pointerSize": 1}}}})",
                        kSha1, kSha256));
  ASSERT_TRUE(listing) << listing.error().message;
  EXPECT_EQ(listing->commit, kCommit);
  ASSERT_EQ(listing->files.size(), 2u);
  EXPECT_EQ(listing->files[0].oid, kSha1);
  EXPECT_FALSE(listing->files[0].is_large());
  EXPECT_EQ(listing->files[1].size, 9000000000);
  EXPECT_EQ(listing->files[1].oid, kSha256);
  EXPECT_TRUE(listing->files[1].is_large());
}

TEST(Listing, NamesThatLeadElsewhereAreRefused) {
  for (const char* name :
       {"..", "../x", "a/../x", "/x", "a//x", "a/", "./x", "", "a\\\\x", "a\\u0000x", "a\\nx"})
    EXPECT_NE(Why(Small(name)).find("'..', backslashes"), std::string::npos) << name;
  EXPECT_NE(Why(Small(std::string(256, 'x'))).find("backslashes"), std::string::npos);
  std::string deep = "x";
  while (deep.size() < 1023) deep += "/x";
  EXPECT_TRUE(Parse(Small(deep)));
  EXPECT_NE(Why(Small(deep + "/x")).find("backslashes"), std::string::npos);
  for (const char* name : {"..x", "x..", "a/b/c.json", ".gitattributes", "naïve name.txt"})
    EXPECT_TRUE(Parse(Small(name))) << name;
}

TEST(Listing, NamesThatExcludeOneAnotherAreRefused) {
  EXPECT_NE(Why(Small("a") + "," + Small("a")).find("twice"), std::string::npos);
  EXPECT_NE(Why(Small("a") + "," + Small("a/b")).find("as a folder"), std::string::npos);
}

TEST(Listing, EveryFileNeedsAChecksumAndOneSize) {
  EXPECT_NE(Why(R"({"rfilename": "a", "size": 3})").find("checksum"), std::string::npos);
  EXPECT_NE(Why(R"({"rfilename": "a", "size": 3, "blobId": "../x"})").find("40"),
            std::string::npos);
  EXPECT_NE(Why(R"({"rfilename": "a", "size": -3, "blobId": "x"})").find("size"),
            std::string::npos);
  EXPECT_NE(
      Why(fmt::format(R"({{"rfilename": "a", "size": 3, "lfs": {{"sha256": "{}", "size": 4}}}})",
                      kSha256))
          .find("3 and 4"),
      std::string::npos);
  EXPECT_FALSE(ParseListing(R"({"sha": "main", "siblings": []})", "listing"));
}

Listing Of(const std::vector<std::string>& names) {
  Listing out{kCommit, {}};
  for (const std::string& name : names)
    out.files.push_back({name, 1, name.ends_with(".safetensors") ? kSha256 : kSha1});
  return out;
}

std::vector<std::string> Chosen(const std::vector<std::string>& names, const Selection& how = {}) {
  std::vector<std::string> out;
  const auto chosen = SelectFiles(Of(names), how, "org/name");
  if (!chosen) return {chosen.error().message};
  for (const HubFile& file : chosen->files) out.push_back(file.path);
  return out;
}

using Names = std::vector<std::string>;

TEST(Selection, WhatLatteReadsSmallFilesFirst) {
  EXPECT_EQ(Chosen({"model-00001-of-00002.safetensors", "config.json", "model.bin", "x.gguf",
                    "original/params.json", "additional_chat_templates/a.jinja",
                    "consolidated-00001.safetensors", "README.md", "tiktoken.model"}),
            (Names{"config.json", "additional_chat_templates/a.jinja", "README.md",
                   "tiktoken.model", "model-00001-of-00002.safetensors"}));
}

TEST(Selection, PatternsMatchAsInHuggingfaceHub) {
  const Names all = {"a.bin", "dir/b.bin", "dir/c.txt"};
  EXPECT_EQ(Chosen(all, {{"*.bin"}, {}, ""}), (Names{"a.bin", "dir/b.bin"}));
  EXPECT_EQ(Chosen(all, {{"dir/"}, {}, ""}), (Names{"dir/b.bin", "dir/c.txt"}));
  EXPECT_EQ(Chosen(all, {{"*"}, {"dir/*", "x"}, ""}), (Names{"a.bin"}));
  EXPECT_FALSE(SelectFiles(Of(all), {{"*.json"}, {}, ""}, "org/name"));
}

TEST(Selection, ARepositoryWithoutWeightsSaysWhatItHas) {
  const auto files = SelectFiles(Of({"config.json", "mmproj-x.gguf", "z.bin"}), {}, "org/name");
  ASSERT_FALSE(files);
  EXPECT_NE(files.error().message.find("it has *.bin, *.gguf"), std::string::npos);
}

TEST(Selection, OfAGgufModelItsPartsAndWhatIsAboutIt) {
  const Names all = {"README.md",
                     "config.json",
                     "tokenizer.json",
                     "mmproj-F16.gguf",
                     "imatrix.dat",
                     "X-Q8_0.gguf",
                     "Q4_K_M/X-Q4_K_M-00001-of-00002.gguf",
                     "Q4_K_M/X-Q4_K_M-00002-of-00002.gguf",
                     "Q4_K_M/README.md"};
  const Names parts = {"Q4_K_M/X-Q4_K_M-00001-of-00002.gguf",
                       "Q4_K_M/X-Q4_K_M-00002-of-00002.gguf"};
  EXPECT_EQ(Chosen(all, {{}, {}, "q8_0"}), (Names{"README.md", "X-Q8_0.gguf"}));
  EXPECT_EQ(Chosen(all, {{}, {"README*"}, "Q4_K_M"}), parts);
  EXPECT_EQ(Chosen(all, {{"Q4_K_M/*.gguf"}, {}, "Q4_K_M"}), parts);
  EXPECT_EQ(Chosen(all, {{}, {"*Q8_0*"}, ""}), (Names{"README.md", parts[0], parts[1]}))
      << "the only model that is left";
  const auto chosen = SelectFiles(Of(all), {{}, {}, "Q4_K_M"}, "org/name");
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ(chosen->gguf, parts[0]);
}

TEST(Selection, WhereThereAreSafetensorsTheyAreTheModel) {
  const Names all = {"config.json", "model.safetensors", "X-Q8_0.gguf"};
  EXPECT_EQ(Chosen(all), (Names{"config.json", "model.safetensors"}));
  EXPECT_EQ(Chosen(all, {{}, {"*.safetensors"}, ""}), (Names{"config.json"}));
  EXPECT_EQ(Chosen(all, {{}, {}, "Q8_0"}), (Names{"X-Q8_0.gguf"}));
}

TEST(Selection, ErrorsNameTheRepositoryAndWhatItHas) {
  const auto why = [](const Names& names, const Selection& how) {
    const auto chosen = SelectFiles(Of(names), how, "org/name");
    return chosen ? "" : chosen.error().message;
  };
  EXPECT_EQ(
      why({"a-Q4_K_M.gguf", "a-Q8_0.gguf"}, {}),
      "org/name: expected one GGUF model, found 2: Q4_K_M (1 B), Q8_0 (1 B); write one of them "
      "after the name, as in org/name:Q4_K_M");
  EXPECT_EQ(why({"a.safetensors", "b.bin"}, {{}, {}, "Q8_0"}),
            "org/name: expected GGUF files because of ':Q8_0', found none; it has *.bin, "
            "*.safetensors; write org/name without ':' for other files");
}

}  // namespace
}  // namespace latte::listing_test

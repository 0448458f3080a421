#include "src/serve/memory_plan.h"

#include <gtest/gtest.h>

#include "src/base/json.h"

namespace latte::memory_plan_test {
namespace {

MemoryPlan Plan() {
  return {.available_bytes = 10'000'000'000,
          .weight_bytes = 4'000'000'000,
          .workspace_bytes = 1'000'000'000,
          .workspace_tokens = 131072,
          .page_bytes = 1'000'000,
          .page_tokens = 64,
          .pages = 3000,
          .max_tokens = 131072,
          .model_tokens = 163840,
          .asked_tokens = 131072,
          .max_sequences = 64,
          .cache_dtype = "fp8"};
}

TEST(MemoryPlan, SumsAndConcurrency) {
  const MemoryPlan plan = Plan();
  EXPECT_EQ(plan.cache_bytes(), 3'000'000'000);
  EXPECT_EQ(plan.total_bytes(), 8'000'000'000);
  EXPECT_EQ(plan.left_bytes(), 2'000'000'000);
  EXPECT_EQ(plan.Sequences(131072), 1);  // 2048 pages each
  EXPECT_EQ(plan.Sequences(4096), 46);   // 64 pages each
  EXPECT_EQ(plan.Sequences(4097), 46);   // 65 pages each
  EXPECT_EQ(plan.Sequences(1), 64);      // not more than max_sequences
}

TEST(MemoryPlan, ProcessesShareTheWeightsOnly) {
  MemoryPlan plan = Plan();
  plan.processes = 2;
  EXPECT_EQ(plan.total_bytes(), 12'000'000'000);
  EXPECT_NE(MemoryPlanText(plan).find("processes          2, each"), std::string::npos);
}

TEST(MemoryPlan, NamesTheGpuWhoseMemoryItIs) {
  MemoryPlan plan = Plan();
  EXPECT_NE(MemoryPlanJson(plan).find("\"gpu\":null"), std::string::npos) << MemoryPlanJson(plan);
  plan.gpu = "cuda:0 'NVIDIA H200'";
  plan.asked_tokens = plan.model_tokens;
  const std::string text = MemoryPlanText(plan);
  for (const char* words : {"GPU memory plan, cuda:0 'NVIDIA H200':\n",
                            "  ▓ workspace of steps 1.00 GB (131,072 tokens)\n"})
    EXPECT_NE(text.find(words), std::string::npos) << words << text;
  EXPECT_NE(MemoryPlanJson(plan).find("\"gpu\":\"cuda:0 'NVIDIA H200'\""), std::string::npos);
}

TEST(MemoryPlan, TextNamesEverything) {
  const std::string text = MemoryPlanText(Plan());
  for (const char* words :
       {"  █ weights            4.00 GB\n", "  ▓ prefill workspace  1.00 GB (131,072 tokens)\n",
        "  ▒ cache              3.00 GB (fp8: 3,000 pages of 64 tokens, 1,000,000 bytes each)\n",
        "  ░ remains            2.00 GB of 10.00 GB available\n",
        "    largest context    131,072 tokens\n",
        "    sequences at once  1 of 131,072 tokens, 46 of 4,096 (at most 64)\n"})
    EXPECT_NE(text.find(words), std::string::npos) << words << text;
}

// 60 columns of 10 GB: 24 of weights, 6 of workspace, 18 of cache, 12 that remain.
TEST(MemoryPlan, TheBarHasTheShares) {
  const auto fill = [](int columns, std::string_view text) {
    std::string out;
    for (int i = 0; i < columns; ++i) out += text;
    return out;
  };
  MemoryPlan plan = Plan();
  const std::string used = fill(24, "█") + fill(6, "▓") + fill(18, "▒");
  EXPECT_NE(MemoryPlanText(plan).find("\n  " + used + fill(12, "░") + "\n"), std::string::npos);
  // 8 GB of which 4 are there.
  plan.available_bytes = 4'000'000'000;
  const std::string missing = fill(29, "█") + "▓│" + fill(7, "▓") + fill(23, "▒");
  EXPECT_NE(MemoryPlanText(plan).find("\n  " + missing + "\n"), std::string::npos)
      << MemoryPlanText(plan);
  EXPECT_NE(MemoryPlanText(plan).find("  │ missing            4.00 GB of 4.00 GB"),
            std::string::npos);
}

TEST(MemoryPlan, ContextThatIsShorterThanAskedForSaysWhy) {
  MemoryPlan plan = Plan();
  plan.model_tokens = plan.max_tokens = 2048;
  EXPECT_NE(MemoryPlanText(plan).find("2,048 tokens, the model's limit; --context is 131,072\n"),
            std::string::npos);
  plan = Plan();
  plan.pages = 100;
  plan.max_tokens = 6400;
  plan.wanted_cache_bytes = 2'048'000'000;
  EXPECT_NE(MemoryPlanText(plan).find(
                "6,400 tokens, all that the cache holds; 131,072 need --cache-bytes 2048000000\n"),
            std::string::npos);
  // The advice alone would be refused.
  plan.wanted_workspace_bytes = 4'000'000'000;
  EXPECT_NE(
      MemoryPlanText(plan).find("131,072 need --cache-bytes 2048000000 and 10.05 GB of memory\n"),
      std::string::npos)
      << MemoryPlanText(plan);
}

TEST(MemoryPlan, MissingAndUnknownMemory) {
  MemoryPlan plan = Plan();
  plan.available_bytes = 7'000'000'000;
  EXPECT_NE(MemoryPlanText(plan).find("missing            1.00 GB of 7.00 GB available\n"),
            std::string::npos);
  plan.available_bytes.reset();
  EXPECT_EQ(plan.left_bytes(), std::nullopt);
  EXPECT_NE(MemoryPlanText(plan).find("    available          unknown\n"), std::string::npos);
  EXPECT_NE(MemoryPlanJson(plan).find("\"left_bytes\":null"), std::string::npos);
}

TEST(MemoryPlan, JsonIsOneObject) {
  const Result<Json> json = Json::Parse(MemoryPlanJson(Plan()), "");
  ASSERT_TRUE(json);
  EXPECT_NE(MemoryPlanJson(Plan()).find("\"cache_bytes\":3000000000"), std::string::npos);
  EXPECT_NE(MemoryPlanJson(Plan()).find("\"sequences_at_4096_tokens\":46"), std::string::npos);
}

}  // namespace
}  // namespace latte::memory_plan_test

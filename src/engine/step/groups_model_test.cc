// Groups of ranks with tokens of their own, which share routed experts, compute the bytes of a
// single rank for each group, and all ranks make the same collectives, with tokens or without.
#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/math.h"
#include "src/base/random.h"
#include "src/engine/settings.h"
#include "src/models/registry.h"
#include "tests/support/avx2_machine.h"
#include "tests/support/comm/recorded.h"
#include "tests/support/comm/threads.h"
#include "tests/support/parameter_name.h"
#include "tests/support/step/single_steps.h"

namespace latte::groups_model_test {
namespace {

using testing_support::CollectiveRecord;
using testing_support::CollectiveTrace;
using testing_support::MachineWithAvx2;
using testing_support::MakeRecorded;
using testing_support::RunRanks;
using testing_support::SingleSteps;
using testing_support::TraceDifference;

constexpr int64_t kMostTokens = 96;  // of a sequence
constexpr int64_t kPageTokens = 16;

// Tokens of the first three groups in each step. Later groups repeat them.
constexpr std::array<int64_t, 3> kSteps[] = {{5, 0, 3}, {1, 1, 1},  {0, 7, 0},
                                             {0, 0, 0}, {2, 33, 1}, {0, 0, 1}};

struct Case {
  const char* model;
  int groups = 2;
  int ranks_per_group = 1;
  bool whole_experts = false;
  bool drafts = false;
  const char* cache = "bf16";

  int ranks() const { return groups * ranks_per_group; }
  friend void PrintTo(const Case& c, std::ostream* out) {
    *out << fmt::format("{} in {} groups of {}, {}{}{}", c.model, c.groups, c.ranks_per_group,
                        c.cache, c.whole_experts ? ", whole experts" : "",
                        c.drafts ? ", drafts" : "");
  }
};

// A rank of a group, as the layers see it. Null: alone.
struct Place {
  int64_t group = 0;
  Communicator* group_ranks = nullptr;
  Communicator* all_ranks = nullptr;
  ExpertExchange exchange = ExpertExchange::kAuto;
};

// The results of one group: hidden states and logits of all calls, in order.
using Numbers = std::vector<float>;

class GroupsModelTest : public testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Model> Load(const RankShare& share, const RankShare& experts) const {
    auto loaded = LoadModel(fmt::format("{}/{}", LATTE_SOURCE_DIR, GetParam().model),
                            {.share = share, .expert_share = experts, .mtp = GetParam().drafts});
    EXPECT_TRUE(loaded) << ToString(loaded.error());
    return loaded ? std::move(*loaded) : nullptr;
  }

  Settings SettingsFor(const Model& model) const {
    EngineOptions o;
    o.page_tokens = kPageTokens;
    o.draft_tokens = GetParam().drafts ? "1" : "0";
    o.cache_dtype = GetParam().cache;
    auto settings = ResolveOptionsForOne(o, model.config(), machine_, kMostTokens);
    EXPECT_TRUE(settings) << ToString(settings.error());
    return *settings;
  }

  std::vector<int64_t> TokensOf(size_t step) const {
    std::vector<int64_t> out;
    for (int g = 0; g < GetParam().groups; ++g)
      out.push_back(kSteps[step][static_cast<size_t>(g % 3)]);
    return out;
  }

  // All steps of one group: its sequence grows by its tokens of each.
  Numbers Compute(const Model& model, const Place& place) const;

  // The same on each rank of all groups.
  std::vector<Numbers> ComputeInGroups(ExpertExchange exchange,
                                       std::vector<CollectiveTrace>& traces) const;

  // Calls f(layer, tokens of each group) for every layer of the calls that Compute makes.
  void ForEachLayer(const Model& model, const auto& f) const {
    const ModelConfig& config = model.config();
    for (size_t s = 0; s < std::size(kSteps); ++s) {
      std::vector<int64_t> tokens = TokensOf(s);
      for (int64_t i = 0; i < config.layers; ++i) f(i, tokens);
      tokens[1] = 0;
      for (int64_t i = 0; i < model.draft_layers(); ++i) f(config.layers + i, tokens);
    }
  }

  // The collectives of all ranks.
  std::vector<std::string> ExpectedOfWorld(const Model& model, ExpertExchange exchange) const;

  // Collectives of a group of several ranks.
  int64_t ExpectedOfGroup(const Model& model, int group) const;

  Machine machine_ = MachineWithAvx2();
};

Numbers GroupsModelTest::Compute(const Model& model, const Place& place) const {
  const Settings settings = SettingsFor(model);
  LatentCache cache = *LatentCache::Create(settings.cache_spec, settings.pages);
  Workspace workspace;
  ThreadPool threads(1);
  SingleSteps steps({.model = &model,
                     .cache = &cache,
                     .workspace = &workspace,
                     .exec = {.threads = &threads, .machine = &machine_},
                     .comms = {.world = place.all_ranks,
                               .group = place.group_ranks,
                               .groups = place.all_ranks == nullptr ? 1 : GetParam().groups}},
                    {.arithmetic = settings.dtype,
                     .sparse_from = settings.sparse_from,
                     .expert_exchange = place.exchange});
  std::vector<int32_t> tokens, pages;
  for (int64_t i = 0; i <= kMostTokens; ++i)
    tokens.push_back(static_cast<int32_t>(Mix64(static_cast<uint64_t>(place.group * 1000 + i)) %
                                          static_cast<uint64_t>(model.config().vocab)));
  for (int32_t i = 0; i < settings.pages; ++i) pages.push_back(i);

  Numbers out;
  const auto keep = [&](const TensorView& rows) {
    out.insert(out.end(), rows.Ptr<float>(), rows.Ptr<float>() + rows.elements());
  };
  int64_t length = 0;
  for (size_t s = 0; s < std::size(kSteps); ++s) {
    std::vector<int64_t> group_tokens = TokensOf(s);
    const int64_t count = group_tokens[static_cast<size_t>(place.group)];
    const auto tell = [&] {
      if (place.all_ranks != nullptr) steps.group_tokens = group_tokens;
    };
    tell();
    const auto chunks = [&](int64_t ahead) {
      std::vector<SequenceChunk> one;
      if (count > 0)
        one.push_back(SequenceChunk::Of(
            std::span(tokens).subspan(static_cast<size_t>(length + ahead),
                                      static_cast<size_t>(count)),
            length, count > 1 ? PromptPath(settings.attention) : DecodePath(settings.attention),
            std::span(pages).first(static_cast<size_t>(CeilDiv(length + count, kPageTokens)))));
      return one;
    };
    keep(steps.Forward(chunks(0)));
    if (count > 0) keep(steps.AllLogits());
    if (GetParam().drafts) {
      // Group 1 only keeps the rows of the first drafting layer; the others draft.
      if (GetParam().groups > 1) group_tokens[1] = 0;
      tell();
      const bool drafts = place.group != 1;
      if (!drafts && count > 0) steps.AppendDraftRows(chunks(1));
      const std::vector<SequenceChunk> run = drafts ? chunks(1) : std::vector<SequenceChunk>();
      keep(steps.Draft(run));
      if (model.draft_layers() > 1)
        keep(steps.Draft(run, {.layer = 1, .input = DraftInput::kDraft}));
    }
    length += count;
  }
  return out;
}

std::vector<Numbers> GroupsModelTest::ComputeInGroups(ExpertExchange exchange,
                                                      std::vector<CollectiveTrace>& traces) const {
  const int ranks = GetParam().ranks();
  const int in_group = GetParam().ranks_per_group;
  std::vector<Numbers> out(static_cast<size_t>(ranks));
  traces.assign(static_cast<size_t>(ranks), {});
  RunRanks(ranks, {}, [&](Communicator& inner) {
    const int rank = inner.rank();
    const auto world = MakeRecorded(inner, traces[static_cast<size_t>(rank)]);
    const auto group = world->Split(rank / in_group, rank);
    const auto model = Load({group->rank(), in_group}, {rank, ranks, GetParam().whole_experts});
    out[static_cast<size_t>(rank)] =
        Compute(*model, {.group = rank / in_group,
                         .group_ranks = in_group > 1 ? group.get() : nullptr,
                         .all_ranks = world.get(),
                         .exchange = exchange});
  });
  return out;
}

std::vector<std::string> GroupsModelTest::ExpectedOfWorld(const Model& model,
                                                          ExpertExchange exchange) const {
  std::vector<std::string> of_layer = {"all_gather", "all_to_all"};
  if (exchange == ExpertExchange::kAllToAll) of_layer = {"all_to_all", "all_to_all", "all_to_all"};
  if (!GetParam().whole_experts)  // with the inner columns of routed and of shared experts
    of_layer = {"all_gather", "all_gather", "all_gather", "all_to_all"};
  std::vector<std::string> out = {"split"};
  ForEachLayer(model, [&](int64_t layer, const std::vector<int64_t>& tokens) {
    const bool any = std::any_of(tokens.begin(), tokens.end(), [](int64_t t) { return t > 0; });
    if (any && model.config().IsMoe(layer)) out.insert(out.end(), of_layer.begin(), of_layer.end());
  });
  return out;
}

int64_t GroupsModelTest::ExpectedOfGroup(const Model& model, int group) const {
  const bool whole = GetParam().whole_experts;
  int64_t out = 0;
  ForEachLayer(model, [&](int64_t layer, const std::vector<int64_t>& tokens) {
    if (tokens[static_cast<size_t>(group)] == 0) return;
    out += 2;                                                  // before and after W_O
    out += model.config().IsMoe(layer) ? (whole ? 3 : 0) : 2;  // shared expert and rows; MLP
    out += layer + 1 == model.config().layers ? 1 : 0;         // logits
  });
  return out;
}

// The collectives of all ranks, or of the group.
std::vector<std::string> OpsOf(const std::string& group, const CollectiveTrace& trace) {
  std::vector<std::string> out;
  for (const CollectiveRecord& record : trace)
    if (record.group == group) out.push_back(record.op);
  return out;
}

TEST_P(GroupsModelTest, EachGroupHasTheBytesOfOneRank) {
  const auto whole = Load({}, {});
  ASSERT_EQ(whole->drafts(), GetParam().drafts);
  const int in_group = GetParam().ranks_per_group;
  std::vector<Numbers> expected;
  for (int g = 0; g < GetParam().groups; ++g) expected.push_back(Compute(*whole, {.group = g}));
  for (const ExpertExchange exchange : {ExpertExchange::kAuto, ExpertExchange::kGather,
                                        ExpertExchange::kPadded, ExpertExchange::kAllToAll}) {
    if (exchange == ExpertExchange::kAllToAll && !GetParam().whole_experts) continue;
    SCOPED_TRACE(Name(exchange));
    const std::vector<std::string> ops = ExpectedOfWorld(*whole, exchange);
    std::vector<CollectiveTrace> traces;
    const std::vector<Numbers> found = ComputeInGroups(exchange, traces);
    for (int rank = 0; rank < GetParam().ranks(); ++rank) {
      const Numbers& of_group = expected[static_cast<size_t>(rank / in_group)];
      const Numbers& of_rank = found[static_cast<size_t>(rank)];
      ASSERT_EQ(of_rank.size(), of_group.size()) << "rank " << rank;
      EXPECT_EQ(std::memcmp(of_rank.data(), of_group.data(), of_group.size() * sizeof(float)), 0)
          << "rank " << rank;
      const CollectiveTrace& trace = traces[static_cast<size_t>(rank)];
      EXPECT_EQ(OpsOf("world", trace), ops) << "rank " << rank;
      EXPECT_EQ(TraceDifference(traces[static_cast<size_t>(rank / in_group * in_group)], trace), "")
          << "rank " << rank;
      EXPECT_EQ(std::ssize(OpsOf("world.0", trace)),
                in_group == 1 ? 0 : ExpectedOfGroup(*whole, rank / in_group))
          << "rank " << rank;
    }
  }
}

constexpr Case kCases[] = {
    {"models/tiny", 2},
    {"models/tiny", 2, 1, true, true},
    {"models/tiny", 3, 1, true},
    {"models/tiny", 2, 2, false, true},
    {"models/tiny", 2, 2, true},
    {"tests/goldens/v3_noaux", 2},
    {"tests/goldens/v3_noaux", 4, 1, true},
    {"tests/goldens/v3_noaux", 2, 2, true, true},
    {"tests/goldens/v3_noaux", 2, 3, false, true},
    {"tests/goldens/v2_lite", 3},
    {"tests/goldens/v2_lite", 3, 1, true},
    {"tests/goldens/v2_lite", 5, 2, true},  // more ranks than experts
    {"tests/goldens/glm", 2, 2},
    {"tests/goldens/glm", 4, 1, true},
    {"tests/goldens/fp8", 2, 1, true},
    {"tests/goldens/fp8", 2, 2, false},
    {"tests/goldens/int8", 2, 1, true},
    {"tests/goldens/int8", 4, 1, false},
    {"tests/goldens/gptq", 2, 1, true},
    {"tests/goldens/axk1", 2, 2, true},
    {"tests/goldens/mistral4", 3, 1, true},
    {"tests/goldens/v32_mtp", 2, 1, true, true, "fp8"},
    {"tests/goldens/glm52_mtp", 2, 2, true, true},
    {"tests/goldens/v3_mtp2", 2, 1, true, true},
    {"tests/goldens/v3_mtp2", 2, 2, false, true},
};
INSTANTIATE_TEST_SUITE_P(Models, GroupsModelTest, testing::ValuesIn(kCases),
                         testing_support::ParameterName());

}  // namespace
}  // namespace latte::groups_model_test

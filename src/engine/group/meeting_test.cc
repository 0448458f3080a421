#include "src/engine/group/meeting.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/engine/group/messages.h"
#include "tests/support/comm/threads.h"

namespace latte::meeting_test {
namespace {

using testing_support::RunRanks;

constexpr WantedCall kEnd = {};

WantedCall Draft(int64_t layer, int64_t tokens) { return {GroupCall::kDraft, layer, tokens}; }
WantedCall Forward(int64_t tokens) { return {GroupCall::kForward, 0, tokens}; }

std::string TextOf(const AgreedCall& agreed) {
  const char* const names[] = {"draft", "forward", "end"};
  return fmt::format("{} {} [{}]", names[static_cast<size_t>(agreed.call)], agreed.layer,
                     fmt::join(agreed.group_tokens, " "));
}

// Every leader asks for its calls in turn, and for the next one when it is granted.
std::vector<std::vector<std::string>> Meet(const std::vector<std::vector<WantedCall>>& scripts) {
  std::vector<std::vector<std::string>> out(scripts.size());
  RunRanks(static_cast<int>(scripts.size()), {}, [&](Communicator& leaders) {
    Meeting meeting(leaders);
    const auto rank = static_cast<size_t>(leaders.rank());
    for (const WantedCall& wanted : scripts[rank]) {
      bool granted = false;
      while (!granted) {
        const AgreedCall agreed = meeting.Ask(wanted);
        out[rank].push_back(TextOf(agreed));
        granted = agreed.is_mine;
      }
    }
  });
  return out;
}

TEST(Meeting, CallsOfOneKindAreComputedTogetherAndDraftsComeFirst) {
  const auto agreed = Meet({{Draft(0, 4), Draft(1, 2), Forward(9), kEnd},
                            {Forward(5), kEnd},
                            {kEnd},
                            {Draft(1, 3), kEnd}});
  const std::vector<std::string> expected = {"draft 0 [4 0 0 0]", "draft 1 [2 0 0 3]",
                                             "forward 0 [9 5 0 0]", "end 0 [0 0 0 0]"};
  for (const auto& one : agreed) EXPECT_EQ(one, expected);
}

// A group may draft after others have computed: its late rows of a page, for example.
TEST(Meeting, ALateDraftHoldsTheEndOfTheStep) {
  const auto agreed = Meet({{Forward(1), Draft(0, 6), kEnd}, {Forward(2), kEnd}});
  const std::vector<std::string> expected = {"forward 0 [1 2]", "draft 0 [6 0]", "end 0 [0 0]"};
  for (const auto& one : agreed) EXPECT_EQ(one, expected);
}

TEST(Messages, OfAnyLengthReachTheOthersAndRankZero) {
  RunRanks(3, {}, [](Communicator& ranks) {
    for (const size_t size : {1, 1000, 70000}) {
      const std::vector<std::byte> sent(size, std::byte{5});
      std::vector<std::byte> message;
      if (ranks.rank() == 0) {
        SendToAll(ranks, sent);
      } else {
        WaitForMessage(ranks, message);
        EXPECT_EQ(message, sent);
      }
      const auto rank = static_cast<size_t>(ranks.rank());
      const auto all = GatherMessages(ranks, std::vector<std::byte>(size * rank, std::byte{7}));
      ASSERT_EQ(all.size(), ranks.rank() == 0 ? 3U : 0U);
      for (size_t r = 0; r < all.size(); ++r)
        EXPECT_EQ(all[r], std::vector<std::byte>(size * r, std::byte{7}));
    }
  });
}

}  // namespace
}  // namespace latte::meeting_test

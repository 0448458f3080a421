#include "src/engine/group/announcement.h"

#include <cstring>

#include <gtest/gtest.h>

namespace latte::announcement_test {
namespace {

constexpr StepCapacity kCapacity = {.tokens = 8,
                                    .chunks = 4,
                                    .pages = 16,
                                    .copies = 3,
                                    .logit_rows = 8,
                                    .groups = 3,
                                    .page_tokens = 16};

// A step with values in every list.
Step ExampleStep(std::span<const std::byte> page) {
  static const std::vector<int32_t> tokens = {5, 6, 7};
  static const std::vector<int32_t> pages = {1, 3};
  Step out(kCapacity);
  out.kind = StepKind::kDraft;
  out.run = {1, DraftInput::kDraft};
  out.AddChunk(SequenceChunk::Of(std::span(tokens).first(2), 14, MlaPath::kLatent, pages), 15);
  out.AddChunk(SequenceChunk::Of(std::span(tokens).last(1), 0, MlaPath::kLatent, pages));
  for (const int32_t row : {4, 2, 0}) out.sources.Add(row);
  for (const int32_t slot : {-1, 6, 7}) out.keep.Add(slot);
  out.AddLogits(std::vector<int64_t>{0, 2});
  out.AddLogits(std::vector<int64_t>{1});
  out.copies.Add({4, 9});
  for (const int64_t count : {3, 0, 8}) out.group_tokens.Add(count);
  out.to_page = 11;
  out.sends_page = 1;
  out.page = page;
  return out;
}

std::span<const std::byte> ContentsOf(const std::vector<std::byte>& message) {
  return ReadAnnouncement(message)->contents;
}

TEST(Announcement, AStepIsReadAsItWasWritten) {
  const std::vector<std::byte> page(13, std::byte{7});
  const std::vector<std::byte> message = WriteAnnouncement(ExampleStep(page));
  const Result<Announcement> announced = ReadAnnouncement(message);
  ASSERT_TRUE(announced);
  EXPECT_EQ(announced->kind, AnnouncementKind::kStep);
  Step read(kCapacity);
  const Status status = ReadStep(announced->contents, read);
  ASSERT_TRUE(status) << ToString(status.error());
  EXPECT_EQ(WriteAnnouncement(read), message);
  EXPECT_EQ(read.kind, StepKind::kDraft);
  EXPECT_EQ(read.run.layer, 1);
  EXPECT_EQ(read.run.input, DraftInput::kDraft);
  ASSERT_EQ(read.chunks.size(), 3);  // the first sequence has a token on the sparse path
  std::vector<SequenceChunk> chunks;
  read.Chunks(read.pages.values(), read.chunks.values(), chunks);
  EXPECT_EQ(chunks[1].path, MlaPath::kSparse);
  EXPECT_EQ(chunks[1].cached_len, 15);
  EXPECT_EQ(chunks[2].query_start, 2);
  EXPECT_EQ(chunks[2].pages.size(), 2u);
  EXPECT_EQ(read.slots.values()[1], 16 + 15);
  EXPECT_EQ(read.logit_blocks(), 2);
  EXPECT_EQ(read.LogitRows(1).front(), 1);
  EXPECT_EQ(read.page.size(), 13u);
  EXPECT_EQ(read.copies.values().front().to, 9);
  EXPECT_EQ(read.group_tokens.values()[2], 8);
}

// No number of the message makes a reader fail otherwise than by an error.
TEST(Announcement, EveryOtherMessageIsAnError) {
  const std::vector<std::byte> page(13, std::byte{7});
  const std::vector<std::byte> message = WriteAnnouncement(ExampleStep(page));
  for (size_t size = 0; size < message.size(); ++size)
    EXPECT_FALSE(ReadAnnouncement(std::span(message).first(size))) << size << " bytes";
  std::vector<std::byte> longer = message;
  longer.resize(longer.size() + 8);
  EXPECT_FALSE(ReadAnnouncement(longer));
  const std::span<const std::byte> contents = ContentsOf(message);
  Step read(kCapacity);
  for (size_t size = 0; size < contents.size(); ++size)
    EXPECT_FALSE(ReadStep(contents.first(size), read)) << size << " bytes";
  for (size_t at = 0; at < contents.size(); at += 8)
    for (const int64_t value : {int64_t{-1}, int64_t{1} << 62, int64_t{99}}) {
      std::vector<std::byte> changed(contents.begin(), contents.end());
      std::memcpy(changed.data() + at, &value, sizeof(value));
      if (!ReadStep(changed, read)) continue;
      std::vector<SequenceChunk> chunks;
      read.Chunks(read.pages.values(), read.chunks.values(), chunks);
      EXPECT_EQ(ContentsOf(WriteAnnouncement(read)).size(), contents.size()) << at;
    }
}

TEST(Announcement, AStepBeyondTheCapacityIsAnError) {
  const std::vector<std::byte> message = WriteAnnouncement(ExampleStep({}));
  StepCapacity smaller = kCapacity;
  smaller.tokens = 2;
  Step read(smaller);
  EXPECT_FALSE(ReadStep(ContentsOf(message), read));
  EXPECT_TRUE(read.empty());
}

TEST(Announcement, OtherKindsHaveTheirContents) {
  const std::vector<std::byte> settings(5, std::byte{3});
  const std::vector<std::byte> message = WriteAnnouncement(AnnouncementKind::kStart, settings);
  const Result<Announcement> read = ReadAnnouncement(message);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, AnnouncementKind::kStart);
  EXPECT_EQ(read->contents.size(), 5u);
  EXPECT_TRUE(ReadAnnouncement(WriteAnnouncement(AnnouncementKind::kStop)));
}

}  // namespace
}  // namespace latte::announcement_test

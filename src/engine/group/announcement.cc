#include "src/engine/group/announcement.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/engine/group/wire.h"

namespace latte {
namespace {

constexpr int64_t kPathCount = 4;

tl::unexpected<Error> NotOfThisBuild(size_t bytes) {
  return Corrupt(
      fmt::format("a message of {} bytes between ranks: expected an announcement of the leader, "
                  "found other bytes; all ranks must run the same build",
                  bytes));
}

template <class T>
void WriteField(const StepList<T>& list, WireWriter& to) {
  to.List(list.values());
}
void WriteField(std::span<const std::byte> bytes, WireWriter& to) { to.List(bytes); }
template <class T>
void WriteField(const T& number, WireWriter& to) {
  to.Int(static_cast<int64_t>(number));
}

template <class T>
void ReadField(StepList<T>& list, WireReader& from) {
  const std::span<const T> values = from.List<T>();
  if (values.size() > list.room().size()) return from.Fail();
  std::ranges::copy(values, list.room().begin());
  list.Resize(std::ssize(values));
}
void ReadField(std::span<const std::byte>& bytes, WireReader& from) {
  bytes = from.List<std::byte>();
}
template <class T>
void ReadField(T& number, WireReader& from) {
  number = static_cast<T>(from.Int());
}

bool IsPart(int64_t begin, int64_t count, int64_t size) {
  return begin >= 0 && count >= 0 && begin <= size && count <= size - begin;
}

bool ChunksFit(const Step& step) {
  return std::ranges::all_of(step.chunks.values(), [&](const StepChunk& c) {
    return IsPart(c.query_start, c.count, step.token_count()) &&
           IsPart(c.first_page, c.page_count, step.pages.size()) && c.cached_len >= 0 &&
           c.path >= 0 && c.path < kPathCount;
  });
}

bool BlocksFit(const Step& step) {
  int64_t begin = 0;
  for (const int32_t end : step.logit_ends.values()) {
    if (end <= begin || end > step.logit_rows.size() || end - begin > kLogitBlockRows) return false;
    begin = end;
  }
  return begin == step.logit_rows.size();
}

bool ListsFit(const Step& step) {
  const int64_t count = step.token_count();
  const bool drafts = step.kind != StepKind::kDecoder;
  return step.positions.size() == count && step.slots.size() == count &&
         step.sources.size() == (drafts ? count : 0) &&
         (step.keep.empty() || step.keep.size() == count);
}

bool KindFits(const Step& step) {
  const auto kind = static_cast<int64_t>(step.kind);
  const auto input = static_cast<int64_t>(step.run.input);
  return kind >= 0 && kind < kStepKinds && (input == 0 || input == 1) && step.run.layer >= 0;
}

}  // namespace

std::vector<std::byte> WriteAnnouncement(AnnouncementKind kind,
                                         std::span<const std::byte> contents) {
  WireWriter out;
  out.Int(static_cast<int64_t>(kind));
  out.List(contents);
  return out.Take();
}

std::vector<std::byte> WriteAnnouncement(const Step& step) {
  WireWriter fields;
  Step::VisitFields(step, [&](const auto& field) { WriteField(field, fields); });
  return WriteAnnouncement(AnnouncementKind::kStep, fields.Take());
}

Result<Announcement> ReadAnnouncement(std::span<const std::byte> message) {
  WireReader in(message);
  Announcement out;
  const int64_t kind = in.Int();
  if (kind < 0 || kind >= kAnnouncementKinds) in.Fail();
  out.kind = static_cast<AnnouncementKind>(kind);
  out.contents = in.List<std::byte>();
  if (!in.ok()) return NotOfThisBuild(message.size());
  return out;
}

Status ReadStep(std::span<const std::byte> contents, Step& step) {
  WireReader in(contents);
  step.Clear();
  Step::VisitFields(step, [&](auto& field) { ReadField(field, in); });
  if (!in.ok() || !KindFits(step) || !ListsFit(step) || !ChunksFit(step) || !BlocksFit(step)) {
    step.Clear();
    return NotOfThisBuild(contents.size());
  }
  return {};
}

}  // namespace latte

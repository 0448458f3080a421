// The messages of a leader to the ranks that follow it (wire.h): a kind, then the contents of that
// kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "latte/status.h"

#include "src/engine/step/step.h"

namespace latte {

enum class AnnouncementKind : int64_t {
  kStep,    // a step, to be computed
  kOpen,    // a model, to be loaded: its name and options
  kStart,   // settings of an engine, which has a new cache
  kGroups,  // each group with an engine of its own, until these end: their settings
  kSpread,  // of the leader of a group: rank 0 of the world leads until it announces kPause
  kPause,
  kStop,
};
inline constexpr int64_t kAnnouncementKinds = 7;

// A view of the message that was read.
struct Announcement {
  AnnouncementKind kind = AnnouncementKind::kStop;
  std::span<const std::byte> contents;
};

std::vector<std::byte> WriteAnnouncement(AnnouncementKind kind,
                                         std::span<const std::byte> contents = {});
std::vector<std::byte> WriteAnnouncement(const Step& step);

// Errors: kCorrupt for another message than WriteAnnouncement writes.
[[nodiscard]] Result<Announcement> ReadAnnouncement(std::span<const std::byte> message);

// Reads the contents of a kStep. `step.page` is a view of them. Errors: kCorrupt for a step that
// the leader does not write: another kind, lists beyond the step's capacity or of different
// lengths, chunks or blocks beyond their lists.
[[nodiscard]] Status ReadStep(std::span<const std::byte> contents, Step& step);

}  // namespace latte

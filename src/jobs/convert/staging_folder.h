// A temporary folder next to the target that replaces the target in one step: at every moment,
// either the old or the new folder exists, complete.
//
// For OUT it is "OUT.PID.tmp". It contains a marker, which is locked while its program runs, the
// new folder, and for a moment the old one. The name, the marker and the lock identify the
// leftovers of a killed program; the next run for the same OUT removes them. Nothing else is ever
// removed.
#pragma once

#include <string>
#include <vector>

#include "latte/status.h"

namespace latte {

class StagingFolder {
 public:
  // Removes leftovers of earlier runs for `target`, then makes the folder. `target` has no trailing
  // slash; its parent exists. `mode`: permissions of the folder, before the umask.
  // Errors: kUnavailable.
  [[nodiscard]] static Result<StagingFolder> Make(const std::string& target, unsigned mode = 0777);
  // For files that only this process needs: "NAME.PID.tmp" in $TMPDIR (or /tmp), mode 0700.
  [[nodiscard]] static Result<StagingFolder> MakeScratch(const std::string& name);
  StagingFolder(StagingFolder&& other) noexcept;
  StagingFolder& operator=(StagingFolder&& other) noexcept;
  ~StagingFolder();  // removes the folder with all its contents

  // The new folder, to be filled by the caller.
  std::string path() const { return folder_ + "/new"; }

  // Moves the new folder to the target. The target must be missing or empty, or `replaced` must
  // name the files in it that may be deleted. Other files that have appeared there are kept and
  // noted.
  // Errors: kUnavailable; the target is unchanged.
  [[nodiscard]] Status Publish(const std::vector<std::string>& replaced);

  // Notes for the user: leftovers that Latte may not remove, a copy that was restored.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  StagingFolder() = default;
  [[nodiscard]] Status MakeFolder(unsigned mode);
  [[nodiscard]] Status Mark(unsigned mode);
  void Sweep();
  void SweepOne(const std::string& folder);
  [[nodiscard]] Status Exchange();
  void RemoveOld(const std::string& folder, const std::vector<std::string>& names);

  std::string target_;
  std::string folder_;  // empty: none, or already published
  int marker_ = -1;
  std::vector<std::string> notes_;
};

}  // namespace latte

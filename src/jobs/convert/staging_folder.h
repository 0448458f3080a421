// A folder that is made beside the wanted one and takes its place in one step: at every moment the
// old one or the new one stands there, whole.
//
// For OUT it is "OUT.PID.tmp". In it lie a marker, which is locked while its program lives, the new
// folder, and for a moment the old one. What a killed program left is known by name, marker and
// lock, and the next run for the same OUT removes it. Nothing else is ever removed.
#pragma once

#include <string>
#include <vector>

#include "latte/status.h"

namespace latte {

class StagingFolder {
 public:
  // Cleans up after earlier runs for `target`, then makes the folder. `target` has no slash at its
  // end; its parent exists. `mode`: of the folder, less the umask. Errors: kUnavailable.
  [[nodiscard]] static Result<StagingFolder> Make(const std::string& target, unsigned mode = 0777);
  // For files that only this process needs: "NAME.PID.tmp" in $TMPDIR (or /tmp), mode 0700.
  [[nodiscard]] static Result<StagingFolder> MakeScratch(const std::string& name);
  StagingFolder(StagingFolder&& other) noexcept;
  StagingFolder& operator=(StagingFolder&& other) noexcept;
  ~StagingFolder();  // removes it with all that is in it

  // The new folder, to be filled.
  std::string path() const { return folder_ + "/new"; }

  // Puts the new folder where the target is. The target does not exist or is empty; or `replaced`
  // names the files in it that may go. What else has come to lie there is kept, and noted.
  // Errors: kUnavailable; the target is as it was.
  [[nodiscard]] Status Publish(const std::vector<std::string>& replaced);

  // What a user should know: leftovers that are not ours to remove, a copy that was put back.
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
  std::string folder_;  // empty: none, or published
  int marker_ = -1;
  std::vector<std::string> notes_;
};

}  // namespace latte

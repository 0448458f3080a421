// A leader's announcer without followers.
#pragma once

#include <functional>
#include <stdexcept>

#include "src/engine/settings.h"
#include "src/engine/step/runner.h"

namespace latte::testing_support {

class NoFollowers final : public StepAnnouncer {
 public:
  std::function<void()> on_finish;  // called at the end of every step

  const RankComms& comms() const override { return comms_; }
  void Start(const Settings&) override {}
  void Announce(Step&, Runner&) override {}
  void Finish(Runner&) override {
    if (on_finish) on_finish();
  }
  void Fail(const std::string& why) override { throw std::runtime_error(why); }
  int64_t idle_tokens() const override { return 0; }

 private:
  RankComms comms_;
};

}  // namespace latte::testing_support

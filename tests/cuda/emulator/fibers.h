// Stacks that a thread switches between: one fiber for each lane of a block. The fibers of a thread
// stay for its next blocks and launches. Not for kernels and not for tests.
#pragma once

#include <memory>
#include <vector>

namespace latte::emulator {

struct Fiber;

class Fibers {
 public:
  static Fibers& OfThread();
  ~Fibers();

  // Makes sure that there are `count` fibers. Each calls `run` again and again; after its last
  // action, `run` switches away and returns when its fiber is resumed for the next block.
  void Prepare(int count, void (*run)());
  // Its next resumption begins `run` again from the top; whatever it was doing is forgotten.
  void Forget(int fiber);
  // From outside: resumes fiber `first`, returns when one calls GoHome.
  void Run(int first);
  // From fiber `from`: both return when `from` is resumed.
  void Switch(int from, int to);
  void GoHome(int from);

 private:
  Fibers();
  static void Enter();
  void Jump(int to, void** fake_of_from);
  void Arrived(void* fake);

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::unique_ptr<Fiber> home_;
  void (*run_)() = nullptr;
  bool left_home_ = false;            // the next to arrive learns the stack of home
  const void* home_stack_ = nullptr;  // for AddressSanitizer
  size_t home_stack_bytes_ = 0;
};

}  // namespace latte::emulator

// A machine with kernels that do not depend on the number of heads or outputs, which ranks divide.
#pragma once

#include "src/kernels/cpu/targets.h"
#include "src/kernels/machine.h"

namespace latte::testing_support {

inline Machine MachineWithAvx2() {
  Machine machine = *Machine::Detect();
  if (machine.Has(x86::kAvx2)) machine.isa = x86::kAvx2;
  return machine;
}

}  // namespace latte::testing_support

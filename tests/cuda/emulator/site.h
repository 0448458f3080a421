// A place in a source, as reports name it.
#pragma once

#include <string>

#include "src/kernels/cuda/words/emulated.h"

namespace latte::emulator {

// "file:line"
inline std::string At(Site site) {
  const std::string file = site.file;
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(site.line);
}

}  // namespace latte::emulator

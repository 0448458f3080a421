# Standard and third-party headers that most files include, compiled once instead of once a file. Nothing of ours is among
# them, and every file still includes what it uses: the other presets compile without them.
option(LATTE_PRECOMPILE_HEADERS "Precompile standard headers" ON)
set(LATTE_PRECOMPILED
  <algorithm> <array> <cmath> <cstdint> <cstdio> <functional> <map> <memory> <mutex> <optional> <span> <string>
  <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h> <tl/expected.hpp>)
if(LATTE_PRECOMPILE_HEADERS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC hides its false alarms about code of standard headers, but not if these are precompiled.
  target_compile_options(latte_flags INTERFACE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()

# latte_precompile(TARGET OWNER HEADER…): TARGET uses the headers that OWNER, made first and compiled with the same flags,
# has compiled. They depend on the flags, so that libraries, programs and tests have one owner each.
function(latte_precompile target owner)
  if(NOT LATTE_PRECOMPILE_HEADERS)
    return()
  endif()
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

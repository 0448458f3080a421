# Warnings and hardening options of every target.
add_library(latte_flags INTERFACE)
target_compile_features(latte_flags INTERFACE cxx_std_20)
target_include_directories(latte_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_compile_options(latte_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual -Wno-missing-field-initializers
  -fstack-protector-strong -fno-math-errno
  # Messages name files without the folder of this clone, so that two clones build the same bytes.
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
  # A contracted multiply-add rounds once where two operations round twice; kernels say which one they mean.
  -ffp-contract=off)
# In a batch, every file is one that is included, so that GCC warns of types of anonymous namespaces as if they were in headers.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(latte_flags INTERFACE -Wno-subobject-linkage)
endif()
if(LATTE_DEVELOPER_MODE)
  target_compile_options(latte_flags INTERFACE -Werror)
endif()
target_compile_definitions(latte_flags INTERFACE _GLIBCXX_ASSERTIONS)
target_link_options(latte_flags INTERFACE -Wl,-z,relro,-z,now)

# Checks of buffers, branch targets and large stack frames, where the compiler has them. Sanitizers bring checks of their own,
# and the checks of buffers need an optimising build.
include(CheckCXXCompilerFlag)
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  foreach(flag -fcf-protection=full -fstack-clash-protection)
    string(MAKE_C_IDENTIFIER "LATTE_HAS${flag}" has)
    check_cxx_compiler_flag(${flag} ${has})
    if(${has})
      target_compile_options(latte_flags INTERFACE ${flag})
    endif()
  endforeach()
  target_compile_options(latte_flags INTERFACE
    $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=3>)
endif()

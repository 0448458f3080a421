# Warnings and hardening options of every target.
add_library(latte_flags INTERFACE)
target_compile_features(latte_flags INTERFACE cxx_std_20)
target_include_directories(latte_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_compile_options(latte_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual -Wno-missing-field-initializers
  -fstack-protector-strong -fno-math-errno
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

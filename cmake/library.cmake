# liblatte, the library for other programs, is linked from the folder libraries. Also the files by which they find it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Before 1.0 a minor version may change the C++ interface: programs and libraries of two minor versions do not meet.
set(LATTE_CPP_VERSION v${PROJECT_VERSION_MAJOR}_${PROJECT_VERSION_MINOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(LATTE_SOVERSION 0.${PROJECT_VERSION_MINOR})
  set(LATTE_COMPATIBILITY SameMinorVersion)
else()
  set(LATTE_SOVERSION ${PROJECT_VERSION_MAJOR})
  set(LATTE_COMPATIBILITY SameMajorVersion)
endif()
# In a package, the program uses liblatte's copy of the engine. Its names have a version of their own: no other program may use them,
# and the program needs the liblatte of its build.
if(LATTE_SHARED_PROGRAM)
  string(CONCAT LATTE_PRIVATE_EXPORTS "};\nLATTE_PRIVATE_${PROJECT_VERSION} {\n  global:\n    extern \"C++\" {\n"
    "      latte::*;\n      *latte::Kernels*;\n      vtable?for?latte::*;\n      typeinfo?for?latte::*;\n"
    "      typeinfo?name?for?latte::*;\n      guard?variable?for?latte::*;\n      non-virtual?thunk?to?latte::*;\n    };\n")
endif()
set(LATTE_EXPORTS ${CMAKE_BINARY_DIR}/latte.map)
configure_file(cmake/latte.map.in ${LATTE_EXPORTS} @ONLY)
# Objects instead of archives for the folders with public functions, because no code inside calls those; and for all folders if
# the program calls them here.
set(folders latte_base latte_engine latte_capi)
if(LATTE_SHARED_PROGRAM)
  latte_folders_below(folders latte_capi)
endif()
list(TRANSFORM folders REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
add_library(latte_shared SHARED ${folders})
add_library(latte::latte ALIAS latte_shared)
set_target_properties(latte_shared PROPERTIES
  OUTPUT_NAME latte EXPORT_NAME latte LINKER_LANGUAGE CXX LINK_DEPENDS ${LATTE_EXPORTS}
  VERSION ${PROJECT_VERSION} SOVERSION ${LATTE_SOVERSION}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
target_compile_features(latte_shared INTERFACE cxx_std_20)
target_include_directories(latte_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# The C++ headers include tl/expected.hpp, the C header does not: an installed target does without.
target_link_libraries(latte_shared
  PUBLIC $<BUILD_INTERFACE:tl::expected> $<INSTALL_INTERFACE:$<TARGET_NAME_IF_EXISTS:tl::expected>>
  PRIVATE latte_flags latte_embed latte_engine)
target_link_options(latte_shared PRIVATE -Wl,--version-script=${LATTE_EXPORTS})
if(LATTE_SHARED_PROGRAM)
  target_link_options(latte_shared PRIVATE -Wl,-Bsymbolic-functions)
endif()

# Packages separate the files of a running program and the files for compilers.
install(TARGETS latte_shared EXPORT latte
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
install(DIRECTORY include/latte DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE NOTICE THIRD_PARTY.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT licences)

set(LATTE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/latte)
install(EXPORT latte NAMESPACE latte:: FILE latteTargets.cmake DESTINATION ${LATTE_PACKAGE_DIR})
configure_package_config_file(cmake/latteConfig.cmake.in ${CMAKE_BINARY_DIR}/latteConfig.cmake
  INSTALL_DESTINATION ${LATTE_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/latteConfigVersion.cmake COMPATIBILITY ${LATTE_COMPATIBILITY})
install(FILES ${CMAKE_BINARY_DIR}/latteConfig.cmake ${CMAKE_BINARY_DIR}/latteConfigVersion.cmake
  DESTINATION ${LATTE_PACKAGE_DIR})

# Relative path from the folder of latte.pc to the prefix, so an installed tree may be moved.
file(RELATIVE_PATH LATTE_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" LATTE_PC_TO_PREFIX "${LATTE_PC_TO_PREFIX}")
configure_file(cmake/latte.pc.in ${CMAKE_BINARY_DIR}/latte.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/latte.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
unset(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME)

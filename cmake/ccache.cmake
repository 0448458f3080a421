# ccache, where it is installed and no other launcher is chosen. Precompiled headers need both settings: GCC must name them in what
# ccache hashes, and ccache must not look for macros of the time in them. Without a base folder the paths that the compiler sees,
# and with them the bytes of the program, are the same as without ccache.
find_program(LATTE_CCACHE ccache)
mark_as_advanced(LATTE_CCACHE)
if(LATTE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR= ${LATTE_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endif()

# cmake -DSOURCE=FOLDER -DHEADER=FILE -P commit.cmake: writes a header with the commit of FOLDER, if that changed. The commit is
# empty where FOLDER is no git repository of its own, as in an unpacked archive.
cmake_minimum_required(VERSION 3.25)
set(commit "")
set(git git --no-optional-locks -C ${SOURCE})
execute_process(COMMAND ${git} rev-parse --show-toplevel OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
                RESULT_VARIABLE failed)
file(REAL_PATH "${SOURCE}" source)
if(NOT failed AND top STREQUAL source)
  execute_process(COMMAND ${git} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${git} diff --quiet HEAD ERROR_QUIET RESULT_VARIABLE changed)
  if(commit AND changed)
    string(APPEND commit " with changes")
  endif()
endif()
file(CONFIGURE OUTPUT "${HEADER}" CONTENT "#define LATTE_COMMIT \"${commit}\"\n")

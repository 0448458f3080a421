# xgrammar, which constrains what a model answers. Optional: tools/get_xgrammar.sh fetches and compiles it.
option(LATTE_XGRAMMAR "Constrain answers by grammars and JSON schemas (xgrammar)" OFF)
set(LATTE_XGRAMMAR_DIR "${PROJECT_SOURCE_DIR}/build/xgrammar" CACHE PATH "Where tools/get_xgrammar.sh installed it")
if(LATTE_XGRAMMAR)
  if(NOT EXISTS "${LATTE_XGRAMMAR_DIR}/installed")
    message(FATAL_ERROR "LATTE_XGRAMMAR: expected xgrammar in ${LATTE_XGRAMMAR_DIR}, found none; "
      "run tools/get_xgrammar.sh ${LATTE_XGRAMMAR_DIR}")
  endif()
  file(STRINGS "${LATTE_XGRAMMAR_DIR}/installed" XGRAMMAR_VERSION REGEX "^[0-9.]+ ")
  string(REGEX REPLACE " .*" "" XGRAMMAR_VERSION "${XGRAMMAR_VERSION}")
  add_library(xgrammar STATIC IMPORTED)
  set_target_properties(xgrammar PROPERTIES
    IMPORTED_LOCATION "${LATTE_XGRAMMAR_DIR}/lib/libxgrammar.a"
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${LATTE_XGRAMMAR_DIR}/include"
    INTERFACE_INCLUDE_DIRECTORIES "${LATTE_XGRAMMAR_DIR}/include")
endif()

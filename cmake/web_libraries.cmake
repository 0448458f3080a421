# cmake -DOUT=FOLDER [-DROOT=/] -P web_libraries.cmake: writes the libraries of the web page to FOLDER, as Debian's packages libjs-marked,
# node-prismjs and libjs-katex install them below ROOT: marked.js, prism.js, katex.js, their licences.txt, libraries.js with their versions
# for the page, and summary.txt for `latte --version`. A library that is not there becomes an empty file: the page then shows such text as
# it is. Files change only if their contents do.
if(NOT DEFINED ROOT)
  set(ROOT /)
endif()
set(SHARE ${ROOT}/usr/share)

# Prism's languages, each after the ones that it builds on.
set(LANGUAGES markup css clike javascript markup-templating bash c cpp csharp cmake diff docker go haskell ini java json jsx kotlin latex lua
    makefile markdown perl php powershell python r ruby rust sql swift toml typescript tsx yaml)

# The first of the files that exists, or "".
function(first_of out)
  foreach(path ${ARGN})
    if(EXISTS "${SHARE}/${path}")
      set(${out} "${SHARE}/${path}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${out} "" PARENT_SCOPE)
endfunction()

# The upstream version of a Debian package, or "" where dpkg does not know it.
function(version_of package out)
  execute_process(COMMAND dpkg-query --admindir=${ROOT}/var/lib/dpkg -W -f "\${Version}" ${package}
    OUTPUT_VARIABLE version ERROR_QUIET RESULT_VARIABLE failed)
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" version "${version}")
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

function(write name text)
  set(before "")
  if(EXISTS "${OUT}/${name}")
    file(READ "${OUT}/${name}" before)
  endif()
  if(NOT EXISTS "${OUT}/${name}" OR NOT before STREQUAL text)
    file(WRITE "${OUT}/${name}" "${text}")
  endif()
endfunction()

# library(NAME TITLE PURPOSE PACKAGE TEXT): writes NAME.js and adds to versions, licences and summary.
function(library name title purpose package text)
  write(${name}.js "${text}")
  set(version null)
  set(summary "${purpose} as it is (install ${package}, then make build)")
  if(NOT text STREQUAL "")
    version_of(${package} number)
    if(number STREQUAL "")
      string(REGEX MATCH "version:\"([0-9.]+)\"" found "${text}")
      set(number "${CMAKE_MATCH_1}")
    endif()
    set(version "\"${number}\"")
    string(STRIP "${purpose} by ${title} ${number}" summary)
    file(READ "${SHARE}/doc/${package}/copyright" licence)
    set(LICENCES "${LICENCES}==== ${title} ${number} (${package}) ====\n\n${licence}\n" PARENT_SCOPE)
  endif()
  set(VERSIONS "${VERSIONS}  ${name}: ${version},\n" PARENT_SCOPE)
  list(APPEND SUMMARY "${summary}")
  set(SUMMARY "${SUMMARY}" PARENT_SCOPE)
endfunction()

function(read_file path out)
  set(text "")
  if(NOT path STREQUAL "")
    file(READ "${path}" text)
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

first_of(marked javascript/marked/marked.umd.min.js javascript/marked/marked.min.js nodejs/marked/marked.min.js)
read_file("${marked}" marked_text)
first_of(katex javascript/katex/katex.min.js javascript/katex/katex.js nodejs/katex/dist/katex.min.js)
read_file("${katex}" katex_text)

# Prism reads its settings when it starts: it must not look for code in the page, nor listen to messages.
first_of(prism nodejs/prismjs/components/prism-core.min.js nodejs/prismjs/components/prism-core.js)
set(prism_text "")
if(NOT prism STREQUAL "")
  file(READ "${prism}" core)
  string(APPEND prism_text "window.Prism = { manual: true, disableWorkerMessageHandler: true };\n${core}\n")
  string(REPLACE "prism-core" "prism-LANGUAGE" pattern "${prism}")
  foreach(language ${LANGUAGES})
    string(REPLACE "LANGUAGE" "${language}" path "${pattern}")
    if(EXISTS "${path}")
      file(READ "${path}" text)
      string(APPEND prism_text "${text};\n")
    endif()
  endforeach()
  string(APPEND prism_text "export default Prism;\n")
endif()

set(LICENCES "Libraries that are part of the web page of Latte, with their licences as Debian records them.\n\n")
library(marked marked Markdown libjs-marked "${marked_text}")
library(prism Prism code node-prismjs "${prism_text}")
library(katex KaTeX math libjs-katex "${katex_text}")
write(licences.txt "${LICENCES}")
write(libraries.js "// Versions of the libraries that the build found; null: none.\nexport const libraries = {\n${VERSIONS}};\n")
list(JOIN SUMMARY ", " SUMMARY)
write(summary.txt "${SUMMARY}")

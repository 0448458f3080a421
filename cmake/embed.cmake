# cmake -DOUT=FILE.cc -DFOLDER=DIR -DLIBRARIES=DIR "-DNAMES=a b …" -P embed.cmake: writes a C++ file that defines latte::WebFiles() from
# text files of FOLDER, and WebLibraries() (src/serve/web/web_files.h). Names libraries/NAME are in LIBRARIES, which
# web_libraries.cmake has filled. The name's suffix determines the Content-Type.
set(TYPE_html "text/html")
set(TYPE_css "text/css")
set(TYPE_js "text/javascript")
set(TYPE_svg "image/svg+xml")
set(TYPE_txt "text/plain")
separate_arguments(NAMES)

# A compiler warns of characters that change the direction of source text. Here they become escapes.
function(escape_directions text out)
  foreach(bytes "226;128;170" "226;128;171" "226;128;172" "226;128;173" "226;128;174" "226;129;166" "226;129;167" "226;129;168" "226;129;169")
    string(ASCII ${bytes} character)
    list(GET bytes 1 second)
    list(GET bytes 2 third)
    math(EXPR second "${second}" OUTPUT_FORMAT HEXADECIMAL)
    math(EXPR third "${third}" OUTPUT_FORMAT HEXADECIMAL)
    string(SUBSTRING ${second} 2 2 second)
    string(SUBSTRING ${third} 2 2 third)
    string(REPLACE "${character}" ")=page=\" \"\\xe2\\x${second}\\x${third}\" R\"=page=(" text "${text}")
  endforeach()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

set(entries "")
foreach(name ${NAMES})
  set(path "${FOLDER}/${name}")
  if(name MATCHES "^libraries/(.*)")
    set(path "${LIBRARIES}/${CMAKE_MATCH_1}")
  endif()
  file(READ "${path}" text)
  file(SHA256 "${path}" hash)
  string(SUBSTRING "${hash}" 0 16 hash)
  string(FIND "${text}" ")=page=" position)
  if(NOT position EQUAL -1)
    message(FATAL_ERROR "${name}: the text must not contain )=page=, which ends a literal")
  endif()
  escape_directions("${text}" text)
  file(SIZE "${path}" size)  # a compiler would count the characters, and give up on large files
  string(REGEX REPLACE "^.*\\." "" suffix "${name}")
  string(APPEND entries
    "    WebFile{\"${name}\", \"${TYPE_${suffix}}; charset=utf-8\", \"\\\"${hash}\\\"\",\n"
    "             {R\"=page=(${text})=page=\", ${size}}},\n")
endforeach()
file(READ "${LIBRARIES}/summary.txt" summary)
file(WRITE "${OUT}"
  "#include \"src/serve/web/web_files.h\"\n\nnamespace latte {\nnamespace {\n\n"
  "constexpr WebFile kFiles[] = {\n${entries}};\n\n}  // namespace\n\n"
  "std::span<const WebFile> WebFiles() { return kFiles; }\n\n"
  "std::string_view WebLibraries() { return R\"=page=(${summary})=page=\"; }\n\n}  // namespace latte\n")

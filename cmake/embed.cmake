# cmake -DOUT=FILE.cc -DFOLDER=DIR "-DNAMES=a b …" -P embed.cmake: writes a C++ file that defines latte::PageFiles() from text
# files of FOLDER (src/serve/page/page_files.h). The name's suffix determines the Content-Type.
set(TYPE_html "text/html")
set(TYPE_css "text/css")
set(TYPE_js "text/javascript")
set(TYPE_svg "image/svg+xml")
separate_arguments(NAMES)
set(entries "")
foreach(name ${NAMES})
  file(READ "${FOLDER}/${name}" text)
  file(SHA256 "${FOLDER}/${name}" hash)
  string(SUBSTRING "${hash}" 0 16 hash)
  string(FIND "${text}" ")=page=" position)
  if(NOT position EQUAL -1)
    message(FATAL_ERROR "${name}: the text must not contain )=page=, which ends a literal")
  endif()
  string(REGEX REPLACE "^.*\\." "" suffix "${name}")
  string(APPEND entries
    "    PageFile{\"${name}\", \"${TYPE_${suffix}}; charset=utf-8\", \"\\\"${hash}\\\"\",\n"
    "             R\"=page=(${text})=page=\"},\n")
endforeach()
file(WRITE "${OUT}"
  "#include \"src/serve/page/page_files.h\"\n\nnamespace latte {\nnamespace {\n\n"
  "constexpr PageFile kFiles[] = {\n${entries}};\n\n}  // namespace\n\n"
  "std::span<const PageFile> PageFiles() { return kFiles; }\n\n}  // namespace latte\n")

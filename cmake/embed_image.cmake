# cmake -DIMAGE=FILE -DOUT=FILE.cc -P embed_image.cmake: writes a C++ file that defines latte::cuda::KernelImage() from a fat
# binary of kernels (src/kernels/cuda/images/image.h).
file(READ "${IMAGE}" hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE "${OUT}"
  "#include \"src/kernels/cuda/images/image.h\"\n\nnamespace latte::cuda {\nnamespace {\n\n"
  "alignas(64) constexpr unsigned char kImage[] = {\n${bytes}0x00};\n\n}  // namespace\n\n"
  "std::span<const std::byte> KernelImage() { return std::as_bytes(std::span(kImage)); }\n\n}  // namespace latte::cuda\n")

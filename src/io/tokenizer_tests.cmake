# Tests of the tokenizer, for CMakeLists.txt beside this file.
latte_test(unicode_test SOURCES unicode_test.cc DEPS io)
latte_test(bpe_test SOURCES bpe_test.cc DEPS io)
latte_test(regex_test SOURCES regex_test.cc DEPS io)
latte_test(pretokenize_test SOURCES pretokenize_test.cc DEPS io)
latte_test(tokenizer_file_test SOURCES chat_template_files_test.cc tokenizer_file_test.cc tokenizer_variants_test.cc
  DEPS io)
latte_test(tiktoken_file_test SOURCES tiktoken_file_test.cc DEPS io)
latte_test(tokenizer_test SOURCES tokenizer_test.cc DEPS io)
latte_test(tokenizer_golden_test SOURCES tokenizer_golden_test.cc DEPS io LABEL golden)
latte_test(tokenizer_pieces_test SOURCES tokenizer_pieces_test.cc DEPS io)

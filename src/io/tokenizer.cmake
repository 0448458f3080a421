# Sources and tests of the tokenizer, for CMakeLists.txt beside this file.
set(LATTE_TOKENIZER_SOURCES
  added_tokens.cc bpe.cc byte_alphabet.cc pretokenize.cc pretokenize_file.cc regex.cc
  regex_dialect.cc tokenizer.cc tokenizer_file.cc unicode.cc unicode_supplement.cc)

function(latte_tokenizer_tests)
  latte_test(unicode_test SOURCES unicode_test.cc DEPS io)
  latte_test(bpe_test SOURCES bpe_test.cc DEPS io)
  latte_test(regex_test SOURCES regex_test.cc DEPS io)
  latte_test(pretokenize_test SOURCES pretokenize_test.cc DEPS io)
  latte_test(tokenizer_file_test SOURCES tokenizer_file_test.cc DEPS io)
  latte_test(tokenizer_test SOURCES tokenizer_test.cc DEPS io)
  latte_test(tokenizer_golden_test SOURCES tokenizer_golden_test.cc DEPS io LABEL golden)
endfunction()
# At the end of the folder's list file, when the library that the tests link is there.
cmake_language(DEFER CALL latte_tokenizer_tests)

# Sources of the tokenizer, for CMakeLists.txt beside this file.
set(LATTE_TOKENIZER_SOURCES
  added_tokens.cc bpe.cc byte_alphabet.cc chat_template_files.cc pretokenize.cc pretokenize_file.cc regex.cc
  regex_dialect.cc tiktoken_file.cc tokenizer.cc tokenizer_file.cc unicode.cc
  unicode_supplement.cc)

# Included after the library exists.
latte_test(jinja_template_test SOURCES jinja_template_test.cc DEPS io)
latte_test(chat_test SOURCES chat_check_test.cc chat_test.cc DEPS io)
latte_test(chat_golden_test SOURCES chat_golden_test.cc DEPS io LABEL golden)
latte_test(chat_prompt_test SOURCES chat_prompt_test.cc DEPS io)
latte_test(answer_message_test SOURCES answer_message_test.cc DEPS io)

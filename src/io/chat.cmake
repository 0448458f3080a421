# What turns a conversation into a prompt: the template interpreter and the families' own formats.
set(LATTE_CHAT_SOURCES
  answer_message.cc chat.cc chat_check.cc chat_deepseek_v32.cc chat_encoders.cc chat_kimi_k2.cc chat_prompt.cc jinja_call.cc jinja_eval.cc
  jinja_expressions.cc jinja_filters.cc jinja_json.cc jinja_lexer.cc jinja_literals.cc
  jinja_methods.cc jinja_operators.cc jinja_parser.cc jinja_repr.cc jinja_statements.cc
  jinja_text.cc jinja_value.cc)

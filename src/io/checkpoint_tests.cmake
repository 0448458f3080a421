# Included after the library exists.
latte_test(checkpoint_test
  SOURCES check_weights_test.cc expected_tensors_test.cc foreign_quant_test.cc
          model_config_refusals_test.cc model_config_test.cc
          model_size_test.cc safetensors_header_test.cc safetensors_test.cc weight_memory_test.cc
  DEPS io)

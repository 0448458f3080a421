# What reads a checkpoint: its config, its tensors, and how the two belong together.
set(LATTE_CHECKPOINT_SOURCES
  check_weights.cc config_reader.cc expected_tensors.cc foreign_quant.cc layer_lists.cc model_config.cc model_family.cc
  model_size.cc quant_config.cc quant_tensors.cc rope_config.cc safetensors.cc safetensors_header.cc safetensors_index.cc
  weight_memory.cc)

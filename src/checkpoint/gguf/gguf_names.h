// The names of tensors in GGUF files.
#pragma once

#include "src/checkpoint/container/tensor_files.h"

namespace latte {

// Gives tensors the names that the same tensors have in DeepSeek's checkpoints:
//
//   blk.3.attn_q_a.weight     model.layers.3.self_attn.q_a_proj.weight
//   blk.3.ffn_up_exps.weight  model.layers.3.mlp.experts.up_proj, all experts in one tensor
//   blk.3.attn_k_b.weight     model.layers.3.self_attn.k_b_proj.weight [H, C, N], and
//   blk.3.attn_v_b.weight     model.layers.3.self_attn.v_b_proj.weight [H, V, C]: together
//                             kv_b_proj
//
// A file that has kv_b_proj too loses these two, which repeat its values. Unknown names stay, and
// are refused by them. Source: gguf-py's table of names.
void UseNamesOfGguf(StoredTensors& tensors);

}  // namespace latte

// The bodies of all `any` kernels.
#pragma once

#include "src/kernels/cuda/any/attention.cuh"
#include "src/kernels/cuda/any/cache.cuh"
#include "src/kernels/cuda/any/gemm.cuh"
#include "src/kernels/cuda/any/indexer.cuh"
#include "src/kernels/cuda/any/moe.cuh"
#include "src/kernels/cuda/any/norm.cuh"
#include "src/kernels/cuda/any/rows.cuh"

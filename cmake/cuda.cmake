# The kernels for NVIDIA GPUs, which nvcc compiles; all other code, and the product without them, needs g++ alone.
option(LATTE_CUDA_KERNELS "Compile the kernels for NVIDIA GPUs, with nvcc" OFF)
set(LATTE_CUDA_ARCHITECTURES 80 86 89 90 100 120 CACHE STRING "Compute capabilities that kernels are compiled for")
mark_as_advanced(LATTE_CUDA_ARCHITECTURES)

# Sets ${out} to the C++ file that holds the kernels, or holds none.
function(latte_cuda_image out)
  if(NOT LATTE_CUDA_KERNELS)
    set(${out} ${PROJECT_SOURCE_DIR}/src/kernels/cuda/images/no_image.cc PARENT_SCOPE)
    return()
  endif()
  find_program(LATTE_NVCC nvcc HINTS /usr/local/cuda/bin REQUIRED)
  execute_process(COMMAND ${LATTE_NVCC} --version OUTPUT_VARIABLE version)
  if(NOT version MATCHES "release 13\\.")
    message(FATAL_ERROR "${LATTE_NVCC}: expected nvcc 13, found: ${version}")
  endif()
  set(image ${CMAKE_CURRENT_BINARY_DIR}/any.fatbin)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/kernel_image.cc)
  set(targets "")
  foreach(level ${LATTE_CUDA_ARCHITECTURES})
    list(APPEND targets -gencode arch=compute_${level},code=sm_${level})
  endforeach()
  # For GPUs that come later.
  list(APPEND targets -gencode arch=compute_80,code=compute_80)
  add_custom_command(OUTPUT ${image}
    COMMAND ${LATTE_NVCC} -std=c++20 -O3 --expt-relaxed-constexpr -Xptxas -warn-spills,-Werror -I ${PROJECT_SOURCE_DIR}
            ${targets} -fatbin -MD -MF ${image}.d -o ${image} ${PROJECT_SOURCE_DIR}/src/kernels/cuda/images/any.cu
    DEPFILE ${image}.d DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/cuda/images/any.cu VERBATIM
    COMMENT "Compiling the kernels for NVIDIA GPUs")
  add_custom_command(OUTPUT ${file}
    COMMAND ${CMAKE_COMMAND} -DIMAGE=${image} -DOUT=${file} -P ${PROJECT_SOURCE_DIR}/cmake/embed_image.cmake
    DEPENDS ${image} ${PROJECT_SOURCE_DIR}/cmake/embed_image.cmake VERBATIM)
  set(${out} ${file} PARENT_SCOPE)
endfunction()

# NVIDIA GPUs: PACELINE_CUDA=AUTO|ON|OFF. With a toolkit (scripts/cuda-toolkit finds it, scripts/setup --cuda gets one) the CUDA code is
# compiled; nothing is linked: the driver, NVML, cuBLASLt and NCCL are opened at run time, so that one binary serves machines with and without GPUs.
#
#   PACELINE_CUDA_ENABLED                         whether CUDA code is in this build
#   paceline_cuda                                 CUDA's headers
#   paceline_cuda_images(TARGET a.cu ...)         adds the images of kernels to a library or program

set(PACELINE_CUDA AUTO CACHE STRING "CUDA code: AUTO (where there is a toolkit), ON (an error without), OFF")
set_property(CACHE PACELINE_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT PACELINE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "PACELINE_CUDA is \"${PACELINE_CUDA}\": AUTO, ON and OFF are allowed")
endif()

# Another list of wheels is another toolkit.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/cuda-wheels.txt
             ${CMAKE_SOURCE_DIR}/cmake/cuda-header-wheels.txt ${CMAKE_SOURCE_DIR}/scripts/cuda-toolkit)
set(PACELINE_CUDA_ENABLED FALSE)
set(PACELINE_CUDA_TOOLKIT "")
if(NOT PACELINE_CUDA STREQUAL OFF)
  execute_process(COMMAND ${CMAKE_SOURCE_DIR}/scripts/cuda-toolkit OUTPUT_VARIABLE PACELINE_CUDA_TOOLKIT OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(PACELINE_CUDA_TOOLKIT)
    set(PACELINE_CUDA_ENABLED TRUE)
  elseif(PACELINE_CUDA STREQUAL ON)
    message(FATAL_ERROR "PACELINE_CUDA=ON, and there is no CUDA toolkit 13 or newer: scripts/setup --cuda gets one, or set CUDA_HOME to yours")
  endif()
endif()
# scripts/build configures anew where scripts/cuda-toolkit has another answer by then.
set(PACELINE_CUDA_CONFIGURED "${PACELINE_CUDA_TOOLKIT}" CACHE INTERNAL "The toolkit of this build; empty: none")
if(NOT PACELINE_CUDA_ENABLED)
  message(STATUS "CUDA: not in this build")
  return()
endif()
message(STATUS "CUDA: ${PACELINE_CUDA_TOOLKIT}")

add_library(paceline_cuda INTERFACE)
target_include_directories(paceline_cuda SYSTEM INTERFACE $<BUILD_INTERFACE:${PACELINE_CUDA_TOOLKIT}/include>)
target_link_libraries(paceline_cuda INTERFACE ${CMAKE_DL_LIBS})

# A100 (sm_80) and H100, H200 (sm_90a) as machine code; newer ones compile the PTX when they load it. The sanitizers' builds run kernels on
# the CPU alone (tests/support/fake_cuda): one target is enough there.
set(PACELINE_CUDA_TARGETS -gencode arch=compute_90a,code=sm_90a)
if(NOT PACELINE_SANITIZE)
  list(APPEND PACELINE_CUDA_TARGETS -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=compute_90)
endif()
# Sizes that host and kernels compute alike are constexpr functions of the parameters.
set(PACELINE_CUDA_FLAGS -std=c++20 -O3 --Werror all-warnings --expt-relaxed-constexpr -lineinfo -I${CMAKE_SOURCE_DIR})
enable_language(ASM)

# Adds to a target, for each a.cu, its image (machine code of every target, and PTX) as data: the symbols paceline_image_a and
# paceline_image_a_end.
function(paceline_cuda_images target)
  foreach(source ${ARGN})
    get_filename_component(stem ${source} NAME_WE)
    set(image ${CMAKE_CURRENT_BINARY_DIR}/${stem}.fatbin)
    add_custom_command(
      OUTPUT ${image}
      COMMAND ${PACELINE_CUDA_TOOLKIT}/bin/nvcc ${PACELINE_CUDA_FLAGS} ${PACELINE_CUDA_TARGETS} -fatbin
              -MD -MF ${image}.d -MT ${image} ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${image}
      DEPENDS ${source}
      DEPFILE ${image}.d
      COMMENT "Compiling ${source} for GPUs"
      VERBATIM)
    set(assembly ${CMAKE_CURRENT_BINARY_DIR}/${stem}_image.S)
    file(CONFIGURE OUTPUT ${assembly} CONTENT [[
    .section .rodata
    .balign 16
    .global paceline_image_@stem@
    .global paceline_image_@stem@_end
paceline_image_@stem@:
    .incbin "@image@"
paceline_image_@stem@_end:
    .byte 0
    .section .note.GNU-stack,"",@progbits
]] @ONLY)
    set_source_files_properties(${assembly} PROPERTIES OBJECT_DEPENDS ${image})
    target_sources(${target} PRIVATE ${assembly})
  endforeach()
endfunction()

# Options of the build, and what they mean for every target. Presets set them; see docs/development.md.

set(GENREC_SANITIZE "" CACHE STRING "sanitizers for every target, as given to -fsanitize=")
set(GENREC_CUDA "AUTO" CACHE STRING "ON: nvcc must be there; OFF: never use it; AUTO: use it where found")
set(GENREC_PYTHON "" CACHE FILEPATH "Python of the project's environment (scripts/setup makes build/venv)")
option(GENREC_COMPILER_ASSERTIONS "assertions in the compiler libraries and tools" ON)
option(GENREC_UNITY "compile sources of libraries and of the runtime's tests six at a time, and the runtime's CUDA sources eight at a time: less where all are compiled, more where one changes" OFF)
option(GENREC_CUDA_DRAFTS "barely optimise tests and benchmarks for a device, for a build that runs them nowhere" OFF)
option(GENREC_SIMT_DEVICE_SIZES "the emulated device runs kernels in the sizes of a device, to count what they do: tests see less" OFF)
option(GENREC_RUNTIME_ASSERTIONS "assertions in the runtime and in compiled models" OFF)

# The build types are ours: -g is left out on purpose, debug information of MLIR headers doubles compile time.
set(CMAKE_CXX_FLAGS_RELEASE "" CACHE STRING "" FORCE)
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-gline-tables-only -fno-omit-frame-pointer" CACHE STRING "" FORCE)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(GENREC_COMPILER_OPTIMIZATION -O2)
  set(GENREC_RUNTIME_OPTIMIZATION -O3)
else()
  set(GENREC_COMPILER_OPTIMIZATION -O1)
  set(GENREC_RUNTIME_OPTIMIZATION -O2)
endif()

if(GENREC_SANITIZE)
  add_compile_options(-fsanitize=${GENREC_SANITIZE} -fno-sanitize-recover=all -fno-sanitize=vptr,function)
  add_link_options(-fsanitize=${GENREC_SANITIZE})
endif()
add_compile_options(-Wall -Wextra -Wno-unused-parameter -fdiagnostics-color=auto)

if(NOT GENREC_PYTHON)
  set(GENREC_PYTHON ${CMAKE_SOURCE_DIR}/build/venv/bin/python)
  if(NOT EXISTS ${GENREC_PYTHON})
    message(FATAL_ERROR "there is no Python environment in build/venv: run scripts/setup, or pass -DGENREC_PYTHON=<python with pyarrow>")
  endif()
endif()

# A precompiled header is good for what includes it whenever it was made: ccache may bring back an older one.
set(GENREC_PCH_OPTIONS "SHELL:-Xclang -fno-pch-timestamp")

find_program(GENREC_NVCC nvcc HINTS /usr/local/cuda/bin)
if(GENREC_CUDA STREQUAL "OFF")
  set(GENREC_NVCC "" CACHE FILEPATH "" FORCE)
elseif(GENREC_CUDA STREQUAL "ON" AND NOT GENREC_NVCC)
  message(FATAL_ERROR "GENREC_CUDA=ON, but there is no nvcc on PATH: install the CUDA toolkit 13.0 or use the release preset")
endif()

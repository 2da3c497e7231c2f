# CUDA: kernels for the device where nvcc is found, and the same kernels for the host, where tests run them.
#
#   add_genrec_cuda(<name> <file.cu>...)
#       compiles each file with nvcc for GENREC_CUDA_ARCHITECTURES, warnings are errors, into static library <name>; nothing
#       without nvcc. What ptxas says is kept beside each object: scripts/cuda_resources.py checks it against an allowance.
#       With GENREC_UNITY neighbours are compiled as one file; files for tensor cores (*.sm90.cu) have objects of their own.
#   add_genrec_cuda_program(<name> [RUNTIME] [UNITE <n>] [DEFINE <macro>] [OPTIONS <of nvcc>...] [TARGETS <libraries>...] LINK <libraries>... SOURCES <files>...)
#       a program for a machine with a device, bin/cuda/<name>; .cpp files (tests) are compiled by nvcc as well. Needs nothing
#       but a driver where it runs, and is built only when asked for: ninja <name>. RUNTIME links the runtime's device code,
#       TARGETS static libraries of the build. UNITE: so many neighbours of the list are compiled as one file: nvcc goes through
#       headers five times, and takes half as long. With a macro its files are compiled once more, into <name>-objects. With
#       GENREC_CUDA_DRAFTS programs are barely optimised: their machine code is of no interest where they are not run.
#   add_genrec_cuda_emulated(<name> <file.cu>...)
#       the same files as static library <name> for the host: what models of --target=cuda-emulated link. With GENREC_UNITY
#       the same neighbours are compiled as one file.
#   add_genrec_simt_object(<name> <sources>...)
#       an object with kernels for the host, for such a program to load
#   add_genrec_simt_program(<name> <sources>...)
#       builds program <name> for the emulated device
#   add_genrec_simt_tests(<name> <sources>... [RUNTIME <folder>] [LINK <libraries>...])
#       builds GoogleTest program <name> in which kernels run on the host: test/Cuda/Simt/simt.h; with the runtime's headers of
#       another folder than runtime/, and libraries before the runtime's. Not optimised, but for the sources below. With
#       GENREC_UNITY sources of one UNITY_GROUP are compiled as one file.
#   genrec_optimize_simt_tests(<sources>...)
#       sources of such programs whose tests would lose more than compiling gains
#
# nvcc is called directly, not through CMake's language CUDA: a machine without the toolkit then has the same project, and the
# host compiler of nvcc (g++) may differ from the project's (clang).

set(GENREC_CUDA_ARCHITECTURES "90a" CACHE STRING "compute capabilities that kernels are compiled for, as 80;90a;100a")
find_program(GENREC_CCACHE ccache)
find_program(GENREC_CUDA_HOST_COMPILER NAMES g++-12 g++)
# Accusations name places. LLVM's reads what it needs of a program's line tables, GNU's all of them: 0.04 and 0.7 s.
find_program(GENREC_ADDR2LINE NAMES llvm-addr2line-22 addr2line)

if(GENREC_NVCC AND GENREC_CUDA_HOST_COMPILER)
  set(GENREC_HAS_CUDA TRUE)
  get_filename_component(bin ${GENREC_NVCC} DIRECTORY)
  get_filename_component(GENREC_CUDA_HOME ${bin} DIRECTORY)
  message(STATUS "CUDA: ${GENREC_NVCC} for sm_${GENREC_CUDA_ARCHITECTURES}")
else()
  set(GENREC_HAS_CUDA FALSE)
  message(STATUS "CUDA: no nvcc on PATH or in /usr/local/cuda/bin: kernels are tested on the host and not compiled for a device "
                 "(install the CUDA toolkit 13.0 to compile them)")
endif()

# nvcc would compress the machine code of large objects, each by itself: no archive of several programs then sees what they share.
set(GENREC_CUDA_FLAGS -std=c++20 -O3 -lineinfo -Xptxas=-v -Werror all-warnings -Xcompiler=-Wall,-Wextra,-Wno-unused-parameter
    --no-compress -diag-suppress=20012 --expt-relaxed-constexpr -ccbin ${GENREC_CUDA_HOST_COMPILER})
foreach(architecture IN LISTS GENREC_CUDA_ARCHITECTURES)
  if(architecture MATCHES "^[0-9]+$" AND architecture GREATER_EQUAL 90)
    message(FATAL_ERROR "GENREC_CUDA_ARCHITECTURES: kernels for ${architecture} use the architecture's own instructions: "
                        "write ${architecture}a")
  endif()
  list(APPEND GENREC_CUDA_FLAGS -gencode=arch=compute_${architecture},code=sm_${architecture})
endforeach()

# _genrec_cuda_objects(<variable> <folder> <sources>): nvcc commands, and the list of their objects.
function(_genrec_cuda_objects variable folder)
  set(objects)
  foreach(source IN LISTS ARGN)
    get_filename_component(path ${source} ABSOLUTE)
    file(RELATIVE_PATH stem ${CMAKE_SOURCE_DIR} ${path})
    if(path MATCHES "^${CMAKE_BINARY_DIR}/united/(.+)")
      set(stem ${CMAKE_MATCH_1})
    endif()
    set(object ${CMAKE_BINARY_DIR}/${folder}/${stem}.o)
    get_filename_component(object_folder ${object} DIRECTORY)
    file(MAKE_DIRECTORY ${object_folder})
    set(language)
    if(source MATCHES "\\.cpp$")
      set(language -x cu)
    endif()
    add_custom_command(OUTPUT ${object}
      COMMAND sh -c "\"$@\" 2>\"$0\" || { cat \"$0\" >&2; exit 1; }" ${object}.ptxas
              env CCACHE_DEPEND=true CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${GENREC_CCACHE} ${GENREC_NVCC} ${GENREC_CUDA_FLAGS}
              -I${CMAKE_SOURCE_DIR}/runtime/include -I${CMAKE_SOURCE_DIR}/runtime -I${CMAKE_BINARY_DIR}/include
              -MD -MF ${object}.d ${language} -c ${path} -o ${object}
      DEPENDS ${path} DEPFILE ${object}.d VERBATIM COMMENT "Compiling ${stem} with nvcc")
    list(APPEND objects ${object})
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()

# _genrec_unite(<variable> <name> <n> <sources>): files that include n of the sources each, where their reports are expected.
function(_genrec_unite variable name n)
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  list(TRANSFORM ARGN REPLACE "^${CMAKE_SOURCE_DIR}/" "")
  list(TRANSFORM ARGN REPLACE "^([^/]+)$" "${folder}/\\1")
  set(united)
  while(ARGN)
    list(SUBLIST ARGN 0 ${n} some)
    list(REMOVE_ITEM ARGN ${some})
    list(TRANSFORM some REPLACE "(.+)" "#include \"\\1\"\n")
    list(JOIN some "" text)
    list(LENGTH united number)
    set(file ${CMAKE_BINARY_DIR}/united/${folder}/${name}-${number}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}")
    list(APPEND united ${file})
  endwhile()
  set(${variable} ${united} PARENT_SCOPE)
endfunction()

function(add_genrec_cuda name)
  if(NOT GENREC_HAS_CUDA OR NOT ARGN)
    return()
  endif()
  set(sources ${ARGN})
  if(GENREC_UNITY)
    set(alone ${sources})
    list(FILTER alone INCLUDE REGEX "\\.sm[0-9]+\\.cu$")
    list(FILTER sources EXCLUDE REGEX "\\.sm[0-9]+\\.cu$")
    list(APPEND GENREC_CUDA_FLAGS -I${CMAKE_SOURCE_DIR})
    _genrec_unite(sources ${name} 8 ${sources})
    list(APPEND sources ${alone})
  endif()
  _genrec_cuda_objects(objects cuda-objects ${sources})
  add_library(${name} STATIC ${objects})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  target_link_libraries(${name} PUBLIC genrec_rt ${GENREC_CUDA_HOME}/lib64/libcudart_static.a rt dl)
endfunction()

function(add_genrec_cuda_program name)
  cmake_parse_arguments(PARSE_ARGV 1 program "RUNTIME" "DEFINE;UNITE" "OPTIONS;TARGETS;LINK;SOURCES")
  if(NOT GENREC_HAS_CUDA)
    return()
  endif()
  set(folder cuda-program-objects)
  if(program_DEFINE)
    set(folder ${name}-objects)
    list(APPEND GENREC_CUDA_FLAGS -D${program_DEFINE})
  endif()
  if(name MATCHES "^check-")
    # nvcc's level is the host compiler's: what prepares tests and compares is not timed. Kernels are the same.
    list(TRANSFORM GENREC_CUDA_FLAGS REPLACE "^-O3$" "-O1")
  endif()
  if(GENREC_CUDA_DRAFTS)
    list(APPEND GENREC_CUDA_FLAGS --Ofast-compile=max)
  endif()
  list(APPEND GENREC_CUDA_FLAGS ${program_OPTIONS})
  if(program_UNITE)
    list(APPEND GENREC_CUDA_FLAGS -I${CMAKE_SOURCE_DIR})
    _genrec_unite(program_SOURCES ${name} ${program_UNITE} ${program_SOURCES})
  endif()
  _genrec_cuda_objects(objects ${folder} ${program_SOURCES})
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/bin/cuda)
  set(libraries ${program_TARGETS})
  if(program_RUNTIME)
    list(APPEND libraries genrec_rt_cuda genrec_rt)
  endif()
  list(TRANSFORM libraries REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE files)
  list(PREPEND program_LINK ${files})
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/bin/cuda/${name}
    COMMAND ${GENREC_NVCC} -ccbin ${GENREC_CUDA_HOST_COMPILER} -cudart static -Xcompiler=-static-libstdc++,-static-libgcc
            ${objects} ${program_LINK} -o ${CMAKE_BINARY_DIR}/bin/cuda/${name}
    DEPENDS ${objects} ${libraries} VERBATIM COMMENT "Linking bin/cuda/${name}")
  add_custom_target(${name} DEPENDS ${CMAKE_BINARY_DIR}/bin/cuda/${name})
endfunction()

# Kernels on the host. The callbacks of the thread sanitizer are compiled in and answered by the engine, which itself must not
# be compiled so. Vectors wider than 16 bytes would not be seen, and loops over kernels' memory are better seen as written.
# Alignment is checked where the source accesses memory: a float4 may be read in parts. Shifts by too much and floats that an
# integer cannot hold give other numbers on a device. The level is of what has no other:
# what links the runtime has the runtime's, which comes behind it (five tests: -O1 38 s, -O3 42, -O0 11).
set(GENREC_SIMT_FLAGS -O1 -g1 -march=x86-64-v3 -ffp-contract=off -fno-vectorize -fno-slp-vectorize -fsanitize=thread
    -fsanitize=array-bounds,alignment,shift-exponent,float-cast-overflow
    -fno-sanitize-recover=array-bounds,alignment,shift-exponent,float-cast-overflow
    "SHELL:-mllvm -tsan-instrument-read-before-write" "SHELL:-mllvm -tsan-instrument-func-entry-exit=0"
    "SHELL:-mllvm -tsan-instrument-atomics=0" -fbracket-depth=8192) # folds over a kernel's arguments
if(GENREC_SIMT_DEVICE_SIZES)
  list(APPEND GENREC_SIMT_FLAGS -DGENREC_SIMT_DEVICE_SIZES)
endif()
# For tests that compile kernels themselves.
list(JOIN GENREC_SIMT_FLAGS " " flags)
string(REPLACE "SHELL:" "" flags "${flags}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/share/genrec/simt-flags CONTENT "${flags}\n")

# How genrec-compile compiles the unit of a model for CUDA (toolchain.json), with nvcc and for the emulator.
function(_genrec_cuda_unit variable name compiler flags include libraries)
  set(members "\"compiler\": \"${compiler}\"")
  if(ARGN)
    string(APPEND members ", \"precompiled\": \"${ARGN}\"")
  endif()
  foreach(member compile include libraries)
    set(list "${${member}}")
    if(member STREQUAL "compile")
      set(list "${flags}")
    endif()
    list(TRANSFORM list REPLACE "(.+)" "\"\\1\"")
    list(JOIN list ", " list)
    string(APPEND members ", \"${member}\": [${list}]")
  endforeach()
  set(units ${${variable}} "\"${name}\": {${members}}")
  set(${variable} "${units}" PARENT_SCOPE)
endfunction()

if(NOT GENREC_SANITIZE)
  separate_arguments(unit_flags NATIVE_COMMAND "${flags}")
  # The emulator's callbacks are what takes time: a unit is compiled in a third of the time (2.9 and 1.1 s), and a model's steps
  # take as long. Where a test runs large row kernels, these lose what compiling gains.
  list(TRANSFORM unit_flags REPLACE "^-O1$" "-O0")
  # A kernel per row of a warp: cuda/warp.h.
  # What nvcc refuses, the emulator's compiler refuses, too: fields that are initialised out of order.
  list(APPEND unit_flags -std=c++20 -Werror=reorder-init-list -DNDEBUG -DGENREC_WARP_ROWS -xc++ -include cuda_runtime.h)
  _genrec_cuda_unit(GENREC_CUDA_UNITS emulator "" "${unit_flags}" "${CMAKE_SOURCE_DIR}/test/Cuda/Simt/include"
                    "${CMAKE_ARCHIVE_OUTPUT_DIRECTORY}/libgenrec_rt_cuda_emulated.a;${CMAKE_ARCHIVE_OUTPUT_DIRECTORY}/libgenrec_simt.a;${CMAKE_ARCHIVE_OUTPUT_DIRECTORY}/libgenrec_rt.a"
                    ${CMAKE_BINARY_DIR}/share/genrec/PrecompiledEmulatedUnit.pch)
  genrec_precompile_units(PrecompiledEmulatedUnit ${unit_flags} -I${CMAKE_SOURCE_DIR}/test/Cuda/Simt/include)
endif()
if(GENREC_HAS_CUDA)
  # No contraction, as in all compilers: a row kernel has the same bits on every target.
  set(unit_flags ${GENREC_CUDA_FLAGS} -fmad=false)
  list(REMOVE_ITEM unit_flags -Xptxas=-v -Werror all-warnings)
  # nvcc's level is the host compiler's: a unit's host code only launches. Kernels are the same, two seconds sooner.
  list(TRANSFORM unit_flags REPLACE "^-O3$" "-O1")
  list(APPEND unit_flags -Xcompiler=-Wno-missing-field-initializers) # descriptions leave out what is zero
  _genrec_cuda_unit(GENREC_CUDA_UNITS nvcc "${GENREC_NVCC}" "${unit_flags}" ""
                    "${CMAKE_ARCHIVE_OUTPUT_DIRECTORY}/libgenrec_rt_cuda.a;${CMAKE_ARCHIVE_OUTPUT_DIRECTORY}/libgenrec_rt.a;${GENREC_CUDA_HOME}/lib64/libcudart_static.a;-lrt;-ldl")
endif()
list(JOIN GENREC_CUDA_UNITS ", " GENREC_CUDA_UNITS)

function(_genrec_simt_engine)
  if(NOT TARGET genrec_simt)
    file(GLOB engine CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/test/Cuda/Simt/*.cpp)
    add_library(genrec_simt STATIC ${engine})
    target_compile_options(genrec_simt PRIVATE -O2 ${GENREC_RUNTIME_BASELINE})
    target_compile_definitions(genrec_simt PRIVATE GENREC_ADDR2LINE="${GENREC_ADDR2LINE}")
    target_include_directories(genrec_simt PUBLIC ${CMAKE_SOURCE_DIR}/test/Cuda/Simt ${CMAKE_SOURCE_DIR}/test/Cuda/Simt/include)
    genrec_precompile_standard(genrec_simt)
  endif()
endfunction()

# Options are the target's: a source with its own is not compiled together with others.
function(_genrec_simt_sources name)
  set(cuda_sources ${ARGN})
  list(FILTER cuda_sources INCLUDE REGEX "\\.cu$")
  set_source_files_properties(${cuda_sources} PROPERTIES LANGUAGE CXX)
  target_compile_options(${name} PRIVATE ${GENREC_SIMT_FLAGS} -xc++)
endfunction()

function(add_genrec_cuda_emulated name)
  if(GENREC_SANITIZE)
    return()
  endif()
  _genrec_simt_engine()
  add_library(${name} STATIC ${ARGN})
  _genrec_simt_sources(${name} ${ARGN})
  genrec_compile_in_units(${name} 8)
  target_include_directories(${name} BEFORE PRIVATE ${CMAKE_SOURCE_DIR}/runtime)
  target_link_libraries(${name} PUBLIC genrec_simt genrec_rt)
  genrec_precompile_standard(${name})
endfunction()

function(add_genrec_simt_object name)
  add_library(${name} MODULE ${ARGN})
  target_compile_options(${name} PRIVATE ${GENREC_SIMT_FLAGS})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/test/Cuda/Simt ${CMAKE_SOURCE_DIR}/test/Cuda/Simt/include
                             ${CMAKE_SOURCE_DIR}/runtime/include)
endfunction()

function(add_genrec_simt_program name)
  _genrec_simt_engine()
  add_executable(${name} ${ARGN})
  _genrec_simt_sources(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE genrec_simt genrec_rt)
endfunction()

function(add_genrec_simt_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 simt "" "RUNTIME" "LINK")
  if(NOT simt_RUNTIME)
    set(simt_RUNTIME ${CMAKE_SOURCE_DIR}/runtime)
  endif()
  if(GENREC_SANITIZE)
    message(STATUS "${name} is left out: it checks accesses itself, with the callbacks that -fsanitize=${GENREC_SANITIZE} would take")
    return()
  endif()
  _genrec_simt_engine()
  add_executable(${name} ${simt_UNPARSED_ARGUMENTS})
  _genrec_simt_sources(${name} ${simt_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE ${GENREC_PCH_OPTIONS})
  target_include_directories(${name} BEFORE PRIVATE ${simt_RUNTIME} ${simt_RUNTIME}/include)
  target_precompile_headers(${name} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/PrecompiledTests.h)
  target_link_libraries(${name} PRIVATE ${simt_LINK} genrec_simt genrec_rt GTest::gmock GTest::gtest GTest::gtest_main)
  # Compiling takes a quarter of the time, and the emulator's callbacks are most of what tests take.
  set_target_properties(${name} PROPERTIES GENREC_OPTIMIZATION -O0 UNITY_BUILD ${GENREC_UNITY} UNITY_BUILD_MODE GROUP)
endfunction()

function(genrec_optimize_simt_tests)
  # The precompiled header is not optimised.
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${GENREC_RUNTIME_OPTIMIZATION}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

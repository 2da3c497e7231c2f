# The runtime: static library genrec_rt, linked by every compiled model. No MLIR, no Python.
#
# Sources are built for x86-64-v3 (AVX2, FMA), the least a CPU must have; a file *.avx512.cpp for x86-64-v4. Such a
# file keeps everything it defines in a namespace of its own (two builds of one inline function are one symbol to the
# linker) and is entered only after a check of what the CPU has.

add_library(genrec_runtime_flags INTERFACE)
target_include_directories(genrec_runtime_flags INTERFACE ${CMAKE_SOURCE_DIR}/runtime/include ${CMAKE_BINARY_DIR}/include)
# A target's property GENREC_OPTIMIZATION is what its own sources have instead.
set(own $<TARGET_PROPERTY:GENREC_OPTIMIZATION>)
target_compile_options(genrec_runtime_flags INTERFACE $<IF:$<BOOL:${own}>,${own},${GENREC_RUNTIME_OPTIMIZATION}> -ffp-contract=off)
target_link_libraries(genrec_runtime_flags INTERFACE Threads::Threads)
if(NOT GENREC_RUNTIME_ASSERTIONS)
  target_compile_definitions(genrec_runtime_flags INTERFACE NDEBUG)
endif()
set(GENREC_RUNTIME_BASELINE -march=x86-64-v3)
set(GENREC_RUNTIME_AVX512 -march=x86-64-v4 -mprefer-vector-width=512)

# What genrec-compile compiles the source of a model for the CPU with.
set(GENREC_MODEL_FLAGS -std=c++20 -O3 -march=native -mprefer-vector-width=512 -ffp-contract=off -DNDEBUG)
list(TRANSFORM GENREC_MODEL_FLAGS REPLACE "(.+)" "\"\\1\"" OUTPUT_VARIABLE GENREC_MODEL_FLAGS_JSON)
list(JOIN GENREC_MODEL_FLAGS_JSON ", " GENREC_MODEL_FLAGS_JSON)

# genrec_precompile_units(<name> <flag>...): cmake/<name>.h becomes share/genrec/<name>.pch, a precompiled header of models'
# sources that are compiled with just these flags. Most of the time that an unoptimised one takes is its headers'.
function(genrec_precompile_units name)
  set(header ${CMAKE_SOURCE_DIR}/cmake/${name}.h)
  set(output ${CMAKE_BINARY_DIR}/share/genrec/${name}.pch)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_CXX_COMPILER} ${ARGN} -I${CMAKE_SOURCE_DIR}/runtime/include -I${CMAKE_BINARY_DIR}/include
            -fpch-instantiate-templates -MD -MT ${output} -MF ${output}.d -x c++-header ${header} -o ${output}
    DEPENDS ${header} DEPFILE ${output}.d VERBATIM COMMENT "Precompiling ${name}.h")
  add_custom_target(${name} ALL DEPENDS ${output})
endfunction()

# oneDNN brings the matrix products. Debian's build threads with libgomp; the runtime calls it with one thread.
find_library(GENREC_DNNL_LIBRARY dnnl REQUIRED)

# genrec_precompile_standard(<target>): the standard library is parsed once for all sources of it, where it has several.
function(genrec_precompile_standard name)
  get_target_property(sources ${name} SOURCES)
  list(LENGTH sources count)
  if(count GREATER 3)
    target_compile_options(${name} PRIVATE ${GENREC_PCH_OPTIONS})
    target_precompile_headers(${name} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/PrecompiledStandard.h)
  endif()
endfunction()

# add_genrec_runtime(<name> <folders>): every .cpp below the folders becomes static library <name>.
function(add_genrec_runtime name)
  set(sources)
  foreach(folder IN LISTS ARGN)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
    list(APPEND sources ${found})
  endforeach()
  set(scope PUBLIC)
  if(sources)
    add_library(${name} STATIC ${sources})
    target_compile_options(${name} PRIVATE ${GENREC_RUNTIME_BASELINE})
    genrec_precompile_standard(${name})
    set(avx512 ${sources})
    list(FILTER avx512 INCLUDE REGEX "\\.avx512\\.cpp$")
    genrec_compile_in_units(${name} 6)
    set_source_files_properties(${avx512} PROPERTIES COMPILE_OPTIONS "${GENREC_RUNTIME_AVX512}" SKIP_PRECOMPILE_HEADERS ON)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(${name} ${scope} genrec_runtime_flags Arrow::parquet Arrow::arrow ${GENREC_DNNL_LIBRARY})
endfunction()

# add_genrec_tests(<name> <folder> <libraries>): every .cpp below the folder of test/ becomes one GoogleTest program;
# those for AVX-512 become <name>-avx512, which runs where the CPU has it, and those for AVX512-BF16 (what models are
# compiled for where the CPU has it) <name>-avx512bf16. One program would not start elsewhere: its static initializers, and
# whatever inline functions the linker takes from such a file, are for AVX-512 too.
function(add_genrec_tests name folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  set(avx512 ${sources})
  set(bf16 ${sources})
  list(FILTER avx512 INCLUDE REGEX "\\.avx512\\.cpp$")
  list(FILTER bf16 INCLUDE REGEX "\\.avx512bf16\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "\\.avx512(bf16)?\\.cpp$")
  set(kernels ${sources})
  list(FILTER kernels INCLUDE REGEX "/kernels_[^/]*$")
  if(kernels)
    # What tests of kernels include is what they test: optimised as in models. Others compile in half the time without.
    list(REMOVE_ITEM sources ${kernels})
    add_library(${name}-unoptimized OBJECT ${sources})
    set_target_properties(${name}-unoptimized PROPERTIES GENREC_OPTIMIZATION -O0)
    genrec_compile_in_units(${name}-unoptimized 6)
    _set_up_genrec_tests(${name}-unoptimized "${GENREC_RUNTIME_BASELINE}" ${ARGN})
    set(sources ${kernels} $<TARGET_OBJECTS:${name}-unoptimized>)
  endif()
  _add_genrec_test_program(${name} "${sources}" "${GENREC_RUNTIME_BASELINE}" ${ARGN})
  _add_genrec_test_program(${name}-avx512 "${avx512}" "${GENREC_RUNTIME_AVX512}" ${ARGN})
  _add_genrec_test_program(${name}-avx512bf16 "${bf16}" "${GENREC_RUNTIME_AVX512};-mavx512bf16" ${ARGN})
  foreach(program IN ITEMS ${name}-avx512 ${name}-avx512bf16)
    if(TARGET ${program})
      set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL ON) # scripts/check.py builds what this CPU runs
    endif()
  endforeach()
endfunction()

function(_add_genrec_test_program name sources flags)
  if(sources)
    add_executable(${name} ${sources})
    _set_up_genrec_tests(${name} "${flags}" ${ARGN})
  endif()
endfunction()

function(_set_up_genrec_tests name flags)
  target_compile_options(${name} PRIVATE ${flags} ${GENREC_PCH_OPTIONS})
  target_link_libraries(${name} PRIVATE ${ARGN} GTest::gmock GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE GENREC_TEST_DIR="${CMAKE_CURRENT_SOURCE_DIR}")
  target_precompile_headers(${name} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/PrecompiledTests.h)
  add_dependencies(${name} genrec-headers)
endfunction()

# What a plugin of genrec is built with, in genrec's own build and outside: a project of its own includes this file,
# with GENREC_BINARY_DIR (default: build/ of this checkout) the folder that genrec was built in.
#
#   add_genrec_plugin(<name> <file.td> <dialect>)
#       every .cpp of the current folder becomes <name>.so, with the dialect and the ops of <file.td>, of which
#       TableGen makes <file>{Dialect,Ops}.{h,cpp}.inc

get_filename_component(GENREC_SOURCE_DIR ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(GENREC_BINARY_DIR ${GENREC_SOURCE_DIR}/build CACHE PATH "the folder that genrec was built in")
if(CMAKE_SOURCE_DIR STREQUAL GENREC_SOURCE_DIR)
  set(GENREC_BINARY_DIR ${CMAKE_BINARY_DIR})
else()
  find_package(MLIR REQUIRED CONFIG)
endif()
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# Flags and include paths of code that uses genrec's and MLIR's classes; genrec's precompiled header requires that they
# are the same everywhere.
set(GENREC_COMPILER_OPTIMIZATION -O2 CACHE STRING "optimization of compiler code")
add_library(genrec_compiler_flags INTERFACE)
if(NOT GENREC_BINARY_DIR STREQUAL CMAKE_BINARY_DIR)
  target_include_directories(genrec_compiler_flags INTERFACE ${CMAKE_BINARY_DIR}/include)
endif()
target_include_directories(genrec_compiler_flags INTERFACE ${GENREC_SOURCE_DIR}/include ${GENREC_BINARY_DIR}/include)
target_include_directories(genrec_compiler_flags SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_compile_definitions(genrec_compiler_flags INTERFACE
  _GNU_SOURCE __STDC_CONSTANT_MACROS __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS)
target_compile_options(genrec_compiler_flags INTERFACE
  ${GENREC_COMPILER_OPTIMIZATION} -fno-rtti -fno-exceptions -Xclang -fno-pch-timestamp)
target_link_libraries(genrec_compiler_flags INTERFACE MLIR LLVM)

# genrec/Plugins/HeadersHash.h: the headers that this project is built with. A tool loads plugins with its own hash only.
set(GENREC_HEADERS_HASH ${CMAKE_BINARY_DIR}/include/genrec/Plugins/HeadersHash.h)
file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${GENREC_SOURCE_DIR}/include/genrec/*.h ${GENREC_SOURCE_DIR}/include/genrec/*.td)
add_custom_command(OUTPUT ${GENREC_HEADERS_HASH} DEPENDS ${headers} ${GENREC_SOURCE_DIR}/cmake/HashHeaders.cmake
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${GENREC_SOURCE_DIR}/include/genrec -DOUTPUT=${GENREC_HEADERS_HASH}
    -P ${GENREC_SOURCE_DIR}/cmake/HashHeaders.cmake VERBATIM)
add_custom_target(genrec-headers-hash DEPENDS ${GENREC_HEADERS_HASH})

function(add_genrec_plugin name definitions dialect)
  get_filename_component(stem ${definitions} NAME_WE)
  include_directories(${GENREC_SOURCE_DIR}/include)
  include_directories(SYSTEM ${MLIR_INCLUDE_DIRS})
  set(LLVM_TARGET_DEFINITIONS ${definitions})
  mlir_tablegen(${stem}Dialect.h.inc -gen-dialect-decls -dialect=${dialect})
  mlir_tablegen(${stem}Dialect.cpp.inc -gen-dialect-defs -dialect=${dialect})
  mlir_tablegen(${stem}Ops.h.inc -gen-op-decls)
  mlir_tablegen(${stem}Ops.cpp.inc -gen-op-defs)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(${name} MODULE ${sources} ${TABLEGEN_OUTPUT})
  # genrec's functions are those of the tool that loads it: a copy of its own would have other types.
  target_link_libraries(${name} PRIVATE genrec_compiler_flags)
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
  set_target_properties(${name} PROPERTIES PREFIX "")
  add_dependencies(${name} genrec-headers-hash)
  if(TARGET genrec-headers)
    add_dependencies(${name} genrec-headers)
  endif()
endfunction()

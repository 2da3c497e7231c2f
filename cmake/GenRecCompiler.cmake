# The compiler: libraries in lib/, one per folder, and the tools that link them and the shared libMLIR.
#
#   add_genrec_library(<name> [DEPENDS <targets>] [LINK_LIBS <libraries>])
#       every .cpp below the current folder becomes static library <name>; files may be added without touching CMake
#   add_genrec_tool(<name> [LINK_LIBS <libraries>] [RUNTIME] [PLUGINS])
#       every .cpp of the current folder becomes build/bin/<name>; RUNTIME links the runtime instead of MLIR;
#       PLUGINS: loads plugins, which find every function of the compiler in it, whether or not the tool calls it
#   add_genrec_plugin(...): see GenRecPlugin.cmake
#   add_genrec_tablegen(<file.td> <target> <output> <generator flags> [<output> <generator flags>]...)
#       generates headers into the build folder; every library waits for all of them

include(GenRecPlugin)
if(NOT GENREC_COMPILER_ASSERTIONS)
  target_compile_definitions(genrec_compiler_flags INTERFACE NDEBUG)
endif()

# What must be generated before any compiler source can be compiled.
add_custom_target(genrec-headers)
add_dependencies(genrec-headers genrec-headers-hash)

# MLIR's headers and the dialect's take longer to parse than our code to compile: they are parsed once, here.
add_library(genrec_pch OBJECT ${CMAKE_SOURCE_DIR}/cmake/PrecompiledHeader.cpp)
target_link_libraries(genrec_pch PUBLIC genrec_compiler_flags)
target_precompile_headers(genrec_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/PrecompiledHeader.h)
add_dependencies(genrec_pch genrec-headers)

function(_genrec_compiler_target name)
  target_link_libraries(${name} PUBLIC ${ARGN} genrec_compiler_flags)
  target_precompile_headers(${name} REUSE_FROM genrec_pch)
  add_dependencies(${name} genrec-headers)
endfunction()

function(add_genrec_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${ARG_LINK_LIBS} genrec_compiler_flags)
    return()
  endif()
  add_library(${name} STATIC ${sources})
  _genrec_compiler_target(${name} ${ARG_LINK_LIBS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

function(add_genrec_tool name)
  cmake_parse_arguments(ARG "RUNTIME;PLUGINS" "" "LINK_LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  if(ARG_RUNTIME)
    target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} genrec_rt)
    add_dependencies(${name} genrec-headers)
  else()
    _genrec_compiler_target(${name} ${ARG_LINK_LIBS})
  endif()
  if(ARG_PLUGINS)
    set(api GenRecIR GenRecAnalysis GenRecTargetEmitC GenRecStep GenRecInterpreter GenRecFuzz)
    list(TRANSFORM api REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
    set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON)
    target_link_libraries(${name} PUBLIC GenRecPlugins ${api})
    target_link_options(${name} PRIVATE -Wl,--whole-archive ${archives} -Wl,--no-whole-archive)
  endif()
endfunction()

function(add_genrec_tablegen definitions target)
  if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${definitions})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR})
    return()
  endif()
  set(LLVM_TARGET_DEFINITIONS ${definitions})
  set(rest ${ARGN})
  while(rest)
    list(POP_FRONT rest output flags)
    separate_arguments(flags)
    mlir_tablegen(${output} ${flags})
  endwhile()
  add_custom_target(${target} DEPENDS ${TABLEGEN_OUTPUT})
  add_dependencies(genrec-headers ${target})
endfunction()

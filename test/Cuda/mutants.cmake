# The same tests with mutants, which Mutants/judge.py draws, writes there and judges: nobody else builds this.
set(mutants ${CMAKE_BINARY_DIR}/mutants)
set(mutant_sources)
foreach(source IN LISTS cuda_sources session_sources)
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/runtime ${source})
  list(APPEND mutant_sources ${mutants}/${name})
endforeach()
set_source_files_properties(${mutant_sources} PROPERTIES GENERATED ON)
# Whole models link the archive before the runtime's.
add_genrec_cuda_emulated(genrec_rt_cuda_mutants ${mutant_sources} Mutants/chosen.cpp)
add_genrec_simt_tests(genrec-simt-mutants ${cuda_tests} pipeline_test.cpp Mutants/reached.cpp
  RUNTIME ${mutants} LINK genrec_rt_cuda_mutants genrec_cpu_reference)
if(TARGET genrec-simt-mutants)
  # A part of a mutant may be signed where the whole was not.
  set(mutant_options -Wno-everything -Wno-narrowing)
  target_compile_options(genrec_rt_cuda_mutants PRIVATE ${mutant_options})
  target_compile_options(genrec-simt-mutants PRIVATE ${mutant_options})
  target_include_directories(genrec_rt_cuda_mutants BEFORE PRIVATE Mutants ${mutants} ${mutants}/include)
  target_include_directories(genrec-simt-mutants PRIVATE . Mutants)
  set_target_properties(genrec-simt-mutants PROPERTIES ENABLE_EXPORTS ON)
  set_target_properties(genrec_rt_cuda_mutants genrec-simt-mutants PROPERTIES EXCLUDE_FROM_ALL ON)
  add_dependencies(genrec-simt-mutants genrec-simt-loaded)
endif()

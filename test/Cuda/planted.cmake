# The tests of CUDA code, with all planted defects in the code: none is chosen, or one when the program starts
# (../Python/test_planted_defects.py). So what accuses no right kernel is what catches the wrong ones, compiled once.
set(planted ${CMAKE_BINARY_DIR}/planted-defects)
file(GLOB_RECURSE planted_from CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/*.h ${CMAKE_SOURCE_DIR}/runtime/*.cu)
file(GLOB session_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/session/device_*.cpp
     ${CMAKE_SOURCE_DIR}/runtime/session/ranks.cpp ${CMAKE_SOURCE_DIR}/runtime/session/session_steps.cpp
     ${CMAKE_SOURCE_DIR}/runtime/session/step_slot.cpp)
list(APPEND planted_from ${session_sources})
file(GLOB planting CONFIGURE_DEPENDS plant*.py)
set(planted_sources)
foreach(source IN LISTS cuda_sources session_sources)
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/runtime ${source})
  list(APPEND planted_sources ${planted}/${name})
endforeach()
# Headers are results as well, so that a build that rewrites one compiles what includes it.
file(GLOB_RECURSE planted_headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/runtime ${CMAKE_SOURCE_DIR}/runtime/*.h)
list(TRANSFORM planted_headers PREPEND ${planted}/)
add_custom_command(OUTPUT ${planted}/stamp ${planted_sources} ${planted}/test/Cuda/pipeline_test.cpp BYPRODUCTS ${planted_headers}
  COMMAND ${GENREC_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/planted_defects.py ${CMAKE_SOURCE_DIR} ${planted}
  DEPENDS ${planting} pipeline_test.cpp ${planted_from} VERBATIM COMMENT "Planting defects in CUDA kernels")
add_custom_target(plant-defects DEPENDS ${planted}/stamp)
list(FILTER cuda_tests EXCLUDE REGEX "/pipeline_test\\.cpp$") # has defects itself
# As an archive, which whole models link before the runtime's (../EndToEnd/test_planted_sessions.py).
add_genrec_cuda_emulated(genrec_rt_cuda_planted ${planted_sources})
add_genrec_simt_tests(genrec-simt-tests ${cuda_tests} ${planted}/test/Cuda/pipeline_test.cpp
  RUNTIME ${planted} LINK genrec_rt_cuda_planted genrec_cpu_reference)
genrec_optimize_simt_tests(attention_times_test.cpp library_products_test.cpp)
set_source_files_properties(${attention_tests} PROPERTIES UNITY_GROUP attention)
set_source_files_properties(${store_tests} PROPERTIES UNITY_GROUP store)
set_source_files_properties(${row_tests} PROPERTIES UNITY_GROUP row)
set_source_files_properties(${product_tests} PROPERTIES UNITY_GROUP product)
set_source_files_properties(${list_tests} PROPERTIES UNITY_GROUP list)
if(TARGET genrec-simt-tests)
  target_include_directories(genrec_rt_cuda_planted BEFORE PRIVATE ${planted} ${planted}/include)
  add_dependencies(genrec_rt_cuda_planted plant-defects)
  target_include_directories(genrec-simt-tests PRIVATE .)
  add_dependencies(genrec-simt-tests plant-defects)
  # An object with kernels that a test loads; it uses the emulator of the program.
  add_genrec_simt_object(genrec-simt-loaded Loaded/reversed.cpp)
  add_dependencies(genrec-simt-tests genrec-simt-loaded)
  set_target_properties(genrec-simt-tests PROPERTIES ENABLE_EXPORTS ON)
  set_source_files_properties(loaded_object_test.cpp PROPERTIES
    COMPILE_DEFINITIONS GENREC_LOADED_OBJECT="$<TARGET_FILE:genrec-simt-loaded>")
endif()

# The tests of CUDA code with all planted defects, of which one is chosen when the program starts (../Python/test_planted_defects.py).
set(planted ${CMAKE_BINARY_DIR}/planted-defects)
file(GLOB_RECURSE planted_from CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/*.h ${CMAKE_SOURCE_DIR}/runtime/*.cu)
file(GLOB session_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/session/device_*.cpp
     ${CMAKE_SOURCE_DIR}/runtime/session/step_slot.cpp)
list(APPEND planted_from ${session_sources})
file(GLOB planting CONFIGURE_DEPENDS plant*.py)
set(planted_sources ${planted}/test/Cuda/pipeline_test.cpp)
foreach(source IN LISTS cuda_sources session_sources)
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/runtime ${source})
  list(APPEND planted_sources ${planted}/${name})
endforeach()
# Headers are results as well, so that a build that rewrites one compiles what includes it.
file(GLOB_RECURSE planted_headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/runtime ${CMAKE_SOURCE_DIR}/runtime/*.h)
list(TRANSFORM planted_headers PREPEND ${planted}/)
add_custom_command(OUTPUT ${planted}/stamp ${planted_sources} BYPRODUCTS ${planted_headers}
  COMMAND ${GENREC_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/planted_defects.py ${CMAKE_SOURCE_DIR} ${planted}
  DEPENDS ${planting} pipeline_test.cpp ${planted_from} VERBATIM COMMENT "Planting defects in CUDA kernels")
add_custom_target(plant-defects DEPENDS ${planted}/stamp)
# Tests that include no header with defects are the same objects as those of genrec-simt-tests. Where test_planted_defects.py
# says that one includes what now has a defect, it belongs into the list below.
set(undamaged concat_test device_model device_ranks_test device_steps_test device_test distinct_test in_batch_softmax_test library_products_test
    list_domains_test nccl_comm_test part_copies_test rank_model rank_test row_checks_test row_picks_test
    sized_products_test)
list(JOIN undamaged "|" undamaged)
add_genrec_simt_tests(genrec-simt-defects RUNTIME ${planted}
  attention_hopper_test.cpp attention_list_test.cpp attention_mma_test.cpp attention_plain_test.cpp attention_prepare_test.cpp attention_times_test.cpp cache_test.cpp store_test.cpp
  row_rules_test.cpp hot_rows_test.cpp unique_test.cpp prefix_sums_test.cpp scattered_sums_test.cpp segments_test.cpp pools_test.cpp
  cross_attention_test.cpp cached_store_test.cpp row_exchange_test.cpp columns_test.cpp linear_products_test.cpp large_sizes_test.cpp
  distinct_rows_test.cpp gathered_rows_test.cpp row_bodies_test.cpp row_sums_test.cpp rows_test.cpp
  "$<FILTER:$<TARGET_OBJECTS:genrec-simt-tests>,INCLUDE,/(${undamaged})\\.cpp>" ${planted_sources})
if(TARGET genrec-simt-defects)
  target_link_libraries(genrec-simt-defects PRIVATE genrec_cpu_reference)
  target_include_directories(genrec-simt-defects PRIVATE .)
  add_dependencies(genrec-simt-defects plant-defects)
  # The same objects as an archive, which whole models link before the runtime's (../EndToEnd/test_planted_sessions.py).
  add_library(genrec_rt_cuda_planted STATIC "$<FILTER:$<TARGET_OBJECTS:genrec-simt-defects>,INCLUDE,planted-defects/[^t]>")
  set_target_properties(genrec_rt_cuda_planted PROPERTIES LINKER_LANGUAGE CXX)
endif()

# Sources that GENREC_UNITY compiles together.
#
#   genrec_compile_in_units(<target> <n>)
#       with GENREC_UNITY n neighbours of the target's sources are one file. A source that comes or goes makes other sources
#       neighbours, so that no two of a target may clash: test/Python/test_units.py compiles all of a target as one.
#   genrec_write_units()
#       writes the names of those of these targets that every build makes, a line each, to units.txt of the build folder: for
#       that test.

function(genrec_compile_in_units name number)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${GENREC_UNITY} UNITY_BUILD_BATCH_SIZE ${number})
  set_property(GLOBAL APPEND PROPERTY GENREC_UNITS ${name})
endfunction()

function(genrec_write_units)
  get_property(names GLOBAL PROPERTY GENREC_UNITS)
  set(built)
  foreach(name IN LISTS names)
    get_target_property(is_excluded ${name} EXCLUDE_FROM_ALL)
    if(NOT is_excluded)
      list(APPEND built ${name})
    endif()
  endforeach()
  list(JOIN built "\n" text)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/units.txt CONTENT "${text}\n" @ONLY)
endfunction()

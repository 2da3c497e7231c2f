# Arrow and Parquet C++: an installed package where there is one, else the libraries inside the pyarrow wheel.
# Defines the targets Arrow::arrow and Arrow::parquet, ARROW_VERSION and GENREC_ARROW_{INCLUDE,LIBRARY}_DIR.

find_package(Arrow CONFIG QUIET)
find_package(Parquet CONFIG QUIET)
if(TARGET Arrow::arrow_shared AND TARGET Parquet::parquet_shared)
  add_library(Arrow::arrow ALIAS Arrow::arrow_shared)
  add_library(Arrow::parquet ALIAS Parquet::parquet_shared)
  get_target_property(GENREC_ARROW_INCLUDE_DIR Arrow::arrow_shared INTERFACE_INCLUDE_DIRECTORIES)
  get_target_property(location Arrow::arrow_shared LOCATION)
  get_filename_component(GENREC_ARROW_LIBRARY_DIR ${location} DIRECTORY)
  set(GENREC_ARROW_LINK_DIR ${GENREC_ARROW_LIBRARY_DIR})
  return()
endif()

# Asking takes a second, so the answer is kept as long as it is true.
if(NOT EXISTS "${GENREC_ARROW_INCLUDE_DIR}/arrow/api.h" OR NOT EXISTS "${GENREC_ARROW_LIBRARY_DIR}")
  execute_process(
    COMMAND ${GENREC_PYTHON} -c "import pyarrow as p; print(p.get_include(), p.get_library_dirs()[0], p.cpp_version, sep=';', end='')"
    OUTPUT_VARIABLE answer RESULT_VARIABLE failed ERROR_VARIABLE reason)
  if(failed)
    message(FATAL_ERROR "${GENREC_PYTHON} cannot import pyarrow: run scripts/setup\n${reason}")
  endif()
  list(GET answer 0 include_dir)
  list(GET answer 1 library_dir)
  list(GET answer 2 version)
  set(GENREC_ARROW_INCLUDE_DIR ${include_dir} CACHE PATH "folder with arrow/api.h" FORCE)
  set(GENREC_ARROW_LIBRARY_DIR ${library_dir} CACHE PATH "folder with libarrow.so" FORCE)
  set(ARROW_VERSION ${version} CACHE STRING "version of Arrow C++" FORCE)
endif()

# The wheel carries libarrow.so.<abi> without the name that linkers look for.
set(GENREC_ARROW_LINK_DIR ${CMAKE_BINARY_DIR}/arrow)
file(MAKE_DIRECTORY ${GENREC_ARROW_LINK_DIR})
foreach(component arrow parquet arrow_compute)
  file(GLOB versioned ${GENREC_ARROW_LIBRARY_DIR}/lib${component}.so.*)
  list(LENGTH versioned found)
  if(NOT found EQUAL 1)
    message(FATAL_ERROR "expected one lib${component}.so.* in ${GENREC_ARROW_LIBRARY_DIR}, found ${found}: run scripts/setup")
  endif()
  file(CREATE_LINK ${versioned} ${GENREC_ARROW_LINK_DIR}/lib${component}.so SYMBOLIC)
  add_library(Arrow::${component} SHARED IMPORTED)
  get_filename_component(soname ${versioned} NAME)
  set_target_properties(Arrow::${component} PROPERTIES
    IMPORTED_LOCATION ${GENREC_ARROW_LINK_DIR}/lib${component}.so
    IMPORTED_SONAME ${soname})
  target_include_directories(Arrow::${component} SYSTEM INTERFACE ${GENREC_ARROW_INCLUDE_DIR})
  target_link_options(Arrow::${component} INTERFACE -Wl,-rpath,${GENREC_ARROW_LIBRARY_DIR} -Wl,-rpath-link,${GENREC_ARROW_LIBRARY_DIR})
endforeach()
target_link_libraries(Arrow::parquet INTERFACE Arrow::arrow)
set(Arrow_FOUND TRUE)

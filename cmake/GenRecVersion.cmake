# genrec/Version.h: what the tools print for --version. share/genrec/toolchain.json: how a compiled model is built, read by
# genrec-compile relative to its own place.

find_package(Git QUIET)
execute_process(COMMAND flatc --version OUTPUT_VARIABLE flatc_version OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REGEX MATCH "[0-9.]+" GENREC_FLATBUFFERS_VERSION "${flatc_version}")
configure_file(${CMAKE_SOURCE_DIR}/cmake/Version.h.in ${CMAKE_BINARY_DIR}/include/genrec/Version.h @ONLY)
configure_file(${CMAKE_SOURCE_DIR}/cmake/toolchain.json.in ${CMAKE_BINARY_DIR}/share/genrec/toolchain.json @ONLY)

# The model file's schema: flatc writes the C++ header genrec/Model/model_generated.h into the build folder and the Python
# module python/genrec/_schema.py (not tracked) into the package, which needs it wherever it is imported from.

find_program(GENREC_FLATC flatc REQUIRED)
set(GENREC_SCHEMA ${CMAKE_SOURCE_DIR}/include/genrec/Model/model.fbs)
set(GENREC_SCHEMA_HEADER ${CMAKE_BINARY_DIR}/include/genrec/Model/model_generated.h)
set(GENREC_SCHEMA_MODULE ${CMAKE_SOURCE_DIR}/python/genrec/_schema.py)

if(EXISTS ${GENREC_SCHEMA})
  add_custom_command(OUTPUT ${GENREC_SCHEMA_HEADER} DEPENDS ${GENREC_SCHEMA}
    COMMAND ${GENREC_FLATC} --cpp --scoped-enums --gen-object-api --cpp-std c++17 --reflect-names
            -o ${CMAKE_BINARY_DIR}/include/genrec/Model ${GENREC_SCHEMA}
    COMMENT "Generating model_generated.h")
  add_custom_command(OUTPUT ${GENREC_SCHEMA_MODULE} DEPENDS ${GENREC_SCHEMA}
    COMMAND ${CMAKE_COMMAND} -DFLATC=${GENREC_FLATC} -DSCHEMA=${GENREC_SCHEMA} -DOUTPUT=${GENREC_SCHEMA_MODULE}
            -DWORK=${CMAKE_BINARY_DIR}/schema -P ${CMAKE_SOURCE_DIR}/cmake/GeneratePythonSchema.cmake
    COMMENT "Generating genrec/_schema.py")
  add_custom_target(genrec-schema ALL DEPENDS ${GENREC_SCHEMA_HEADER} ${GENREC_SCHEMA_MODULE})
  add_dependencies(genrec-headers genrec-schema)
else()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/genrec)
endif()

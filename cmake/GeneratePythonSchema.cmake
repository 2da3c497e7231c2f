# Run as a script by GenRecSchema.cmake: flatc picks the name of what it writes itself, so it writes elsewhere and the
# result is moved. FLATC, SCHEMA, OUTPUT and WORK (a folder to write to) are given with -D.

get_filename_component(stem ${SCHEMA} NAME_WE)
file(MAKE_DIRECTORY ${WORK})
execute_process(COMMAND ${FLATC} --python --gen-object-api --gen-onefile -o ${WORK} ${SCHEMA} RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "flatc could not compile ${SCHEMA}")
endif()
configure_file(${WORK}/${stem}_generated.py ${OUTPUT} COPYONLY)
file(TOUCH ${OUTPUT})

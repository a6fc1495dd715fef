set(cli ${CMAKE_SOURCE_DIR}/src/cli)
fr_test(test_cli SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_cli.c ${cli}/args.c ${cli}/help.c ${cli}/out.c LIBS fr_report)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME e2e_outputs COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/e2e/check_outputs.py $<TARGET_FILE:test_report>
    ${CMAKE_SOURCE_DIR})
if(TARGET faultrank)
    add_test(NAME e2e_cli COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/e2e/test_cli.py $<TARGET_FILE:faultrank>
        ${CMAKE_SOURCE_DIR})
    add_test(NAME e2e_check COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/e2e/test_check.py $<TARGET_FILE:faultrank>
        ${CMAKE_SOURCE_DIR})
endif()
add_test(NAME e2e_usage COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/e2e/test_usage.py ${CMAKE_SOURCE_DIR}/tests/e2e)
add_test(NAME e2e_make COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/e2e/test_make.py ${CMAKE_SOURCE_DIR})

add_library(fr_tests_logs STATIC ${CMAKE_SOURCE_DIR}/tests/support/logs.c)
target_include_directories(fr_tests_logs PUBLIC ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(fr_tests_logs PUBLIC fr_engine)
# One program per law of the design's section 5.
file(GLOB laws ${CMAKE_CURRENT_LIST_DIR}/test_law_*.c)
foreach(law ${laws})
    get_filename_component(name ${law} NAME_WE)
    fr_test(${name} SOURCES ${law} LIBS fr_tests_logs)
endforeach()

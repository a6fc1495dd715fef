fr_test(test_failure SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_failure.c LIBS fr_builtin fr_match)

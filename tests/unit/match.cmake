fr_test(test_match SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_match.c LIBS fr_builtin fr_match_compile)

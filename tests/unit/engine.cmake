fr_test(test_engine SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_engine.c LIBS fr_tests_logs)

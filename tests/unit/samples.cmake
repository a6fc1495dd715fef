fr_test(test_samples SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_samples.c LIBS fr_engine)

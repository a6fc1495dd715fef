fr_test(test_match SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_match.c LIBS fr_builtin fr_match_compile)
find_library(FR_TEST_PCRE2 NAMES pcre2-8 REQUIRED)
target_link_libraries(test_match PRIVATE ${FR_TEST_PCRE2})

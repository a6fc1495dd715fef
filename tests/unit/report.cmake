add_library(fr_report_fixtures STATIC ${CMAKE_CURRENT_LIST_DIR}/report_fixtures.c)
target_link_libraries(fr_report_fixtures PUBLIC fr_report)
target_include_directories(fr_report_fixtures PUBLIC ${CMAKE_CURRENT_LIST_DIR})
fr_test(test_report SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_report.c LIBS fr_report_fixtures)

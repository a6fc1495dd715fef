fr_test(test_series_dialects SOURCES unit/test_series_dialects.c LIBS fr_series)
fr_test(test_series_detect SOURCES unit/test_series_detect.c LIBS fr_series)
fr_test(test_series_healthy SOURCES unit/test_series_healthy.c LIBS fr_series)
fr_test(test_series_fault SOURCES unit/test_series_fault.c LIBS fr_series)

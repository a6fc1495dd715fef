fr_test(test_format_samples SOURCES unit/test_format_samples.c LIBS fr_format)
fr_test(test_format_peel SOURCES unit/test_format_peel.c LIBS fr_format)
fr_test(test_format_stamp SOURCES unit/test_format_stamp.c LIBS fr_format)
fr_test(test_format_trace SOURCES unit/test_format_trace.c LIBS fr_format)

fr_test(test_read_hint SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/test_read_hint.c LIBS fr_read)
fr_test(test_read_framer SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/test_read_framer.c LIBS fr_read)
fr_test(test_read_files SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/test_read_files.c LIBS fr_read)
fr_test(test_read_archives SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/test_read_archives.c LIBS fr_read archive zstd)

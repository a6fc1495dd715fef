# The house rules as tests: arrows point down, files and functions stay short.
add_test(NAME check-layers COMMAND ${CMAKE_SOURCE_DIR}/tools/check-layers ${CMAKE_SOURCE_DIR})
add_test(NAME check-length COMMAND ${CMAKE_SOURCE_DIR}/tools/check-length ${CMAKE_SOURCE_DIR})

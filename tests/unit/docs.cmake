# What README, docs/ and the man page show and name is checked against the program and the tree.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(TARGET faultrank)
    add_test(NAME e2e_docs COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/e2e/docs.py $<TARGET_FILE:faultrank> ${CMAKE_SOURCE_DIR})
endif()

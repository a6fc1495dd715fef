fr_test(test_repro SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_repro.c LIBS fr_report fr_repro)
fr_test(test_smoke SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_smoke.c ${CMAKE_SOURCE_DIR}/src/cli/model_config.c LIBS fr_repro fr_tensor)
fr_test(test_repro_pages SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_repro_pages.c LIBS fr_repro fr_builtin)
if(TARGET faultrank)
    add_test(NAME e2e_repro COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/e2e/test_repro.py $<TARGET_FILE:faultrank>
        ${CMAKE_SOURCE_DIR})
endif()
if(TARGET faultrank)
    add_test(NAME e2e_pages COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/e2e/pages.py $<TARGET_FILE:faultrank>
        ${CMAKE_SOURCE_DIR})
endif()
fr_test(test_ring SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_ring.c LIBS fr_repro)
if(TARGET faultrank)
    add_test(NAME e2e_repro_processes COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/e2e/test_repro_processes.py
        $<TARGET_FILE:faultrank>)
endif()

# fr_base is the harness's; test_numerics_alone shows that the library needs nothing else of the tree.
fr_test(test_numerics_alone SOURCES unit/test_numerics_alone.c LIBS fr_numerics)
fr_test(test_numerics_codec SOURCES unit/test_numerics_codec.c LIBS fr_numerics fr_base)
fr_test(test_numerics_block SOURCES unit/test_numerics_block.c LIBS fr_numerics fr_base)
fr_test(test_numerics_ops SOURCES unit/test_numerics_ops.c LIBS fr_numerics fr_base)
fr_test(test_numerics_norm SOURCES unit/test_numerics_norm.c LIBS fr_numerics fr_base)
# Against the bits that two versions of PyTorch left in tests/numerics, and against the one installed.
fr_test(test_numerics_torch SOURCES unit/test_numerics_torch.c LIBS fr_numerics fr_base)
find_program(FR_TORCH_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH) # Debian's torch is Debian's python's
if(FR_TORCH_PYTHON)
    add_test(NAME numerics_torch_live COMMAND ${FR_TORCH_PYTHON} ${CMAKE_SOURCE_DIR}/tests/numerics/torch_bits.py
        --run $<TARGET_FILE:test_numerics_torch>)
    set_tests_properties(numerics_torch_live PROPERTIES SKIP_RETURN_CODE 77)
endif()
fr_test(test_tally SOURCES unit/test_tally.c LIBS fr_numerics fr_base)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    fr_test(test_tally_avx512 SOURCES unit/test_tally_avx512.c LIBS fr_numerics fr_base)
endif()

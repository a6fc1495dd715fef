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
# The kernels: results against double, every variant against the plain one, AVX-512 over stand-ins for its intrinsics.
add_library(fr_tests_kernels STATIC support/kernel_oracle.c)
target_include_directories(fr_tests_kernels PUBLIC ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(fr_tests_kernels PUBLIC fr_numerics fr_base)
fr_test(test_kernels_norm SOURCES unit/test_kernels_norm.c LIBS fr_tests_kernels)
fr_test(test_kernels_same SOURCES unit/test_kernels_same.c LIBS fr_tests_kernels)
fr_test(test_kernels_softmax SOURCES unit/test_kernels_softmax.c LIBS fr_tests_kernels)
fr_test(test_kernels_avx512 SOURCES unit/test_kernels_avx512.c LIBS fr_tests_kernels)
target_compile_options(test_kernels_avx512 PRIVATE -ffp-contract=off)
# The example for C projects: compiled without a flag of ours, linked with the library's file and libm.
add_executable(example_rmsnorm ${CMAKE_SOURCE_DIR}/examples/rmsnorm.c)
target_include_directories(example_rmsnorm PRIVATE ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(example_rmsnorm PRIVATE $<TARGET_FILE:fr_numerics> m $<$<BOOL:${FR_SANITIZE}>:-fsanitize=address,undefined>)
add_dependencies(example_rmsnorm fr_numerics)
add_test(NAME example_rmsnorm COMMAND example_rmsnorm)
set_tests_properties(example_rmsnorm PROPERTIES PASS_REGULAR_EXPRESSION "y.17. = 62.*, the others 0.208")

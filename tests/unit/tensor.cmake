foreach(name safetensors torch numpy layouts manifest)
    fr_test(test_tensor_${name} SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/test_tensor_${name}.c LIBS fr_tensor)
endforeach()

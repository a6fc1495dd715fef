foreach(name safetensors pickle torchzip npy npz distcp dcp index)
    fr_fuzz(${name} LIBS fr_tensor)
    target_compile_definitions(fuzz_${name} PRIVATE FR_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
endforeach()

fr_fuzz(codec LIBS fr_numerics fr_base)
fr_fuzz(emulate LIBS fr_numerics fr_base)
fr_fuzz(kernels LIBS fr_numerics fr_base)

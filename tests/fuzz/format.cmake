fr_fuzz(peel LIBS fr_format)
fr_fuzz(trace LIBS fr_format)
fr_fuzz(stamp LIBS fr_format)

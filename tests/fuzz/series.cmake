fr_fuzz(metric LIBS fr_series)

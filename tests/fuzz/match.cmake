fr_fuzz(failure LIBS fr_failure)
fr_fuzz(scan LIBS fr_builtin fr_match)

fr_fuzz(framer LIBS fr_read)
fr_fuzz(archive LIBS fr_read)

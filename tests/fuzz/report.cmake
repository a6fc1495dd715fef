fr_fuzz(report LIBS fr_report)

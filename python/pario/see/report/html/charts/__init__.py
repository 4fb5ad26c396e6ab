"""Charts as values: a function takes rows of the analysis and returns a
:class:`~pario.see.report.html.charts.chart.Chart` or a piece of SVG."""

"""What records show: rows, and from rows tables, charts and the page, with all that a reader
should know.

In: records. Out: text for terminals, Markdown, CSV and HTML; SVG and PNG; one offline page. Nothing
is measured here.
"""

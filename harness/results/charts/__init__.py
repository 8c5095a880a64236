"""Charts: each is decided once, as plain data (`chart`), and drawn twice: by matplotlib, and by a page's Vega-Lite.

`seconds`, `sizes`, `merging`, `costs` and `compared` describe the kinds of charts from rows; `drawing` and `files` make
a picture of a description, `vega` a figure of a page. Every number is a position on an axis with ticks, so that it can
be read back from a drawing; what shows a figure carries its name as its id (`value-3`, `interval-3`), in the order of
the rows.
"""

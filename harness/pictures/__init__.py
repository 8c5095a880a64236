"""The kinds of pictures that records can be drawn as, one a file, and what they share: the page, the axes, the marks.

Every number in a picture is a position on an axis with ticks, so that it can be read back from the drawing;
artists that show a figure carry its name as their id (`value-3`, `interval-3`), in the order of the rows.
"""

"""Files of records: what a line may hold, how lines are appended and read, and the records that
they make together.

In: the lines of a measurement; files and folders of lines. Out: lines on disk, each written whole;
records, one for each measured process, joined from its run, its cell, its proof and itself.
"""

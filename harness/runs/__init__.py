"""From a request to proved records: overrides become cells, cells are measured in blocks, merges
are proved.

In: overrides of the command line. Out: records, one for each measured cell, on disk as soon as they
are made.
"""

"""One page about records: a table to filter and sort, charts to hover over, and all that a reader may ask of a row."""

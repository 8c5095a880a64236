"""What every room needs: refusals, the registry of cards, units, sheets, files written whole, comparisons of times.

In: plain values. Out: sentences, cards, cells of text, ratios with their intervals. It knows nothing of measuring.
"""

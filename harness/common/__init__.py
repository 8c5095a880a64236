"""Shared by every package: refusals, the registry of cards, units, sheets, whole files, comparisons
of times.

In: plain values. Out: messages, cards, cells of text, ratios with their intervals.
"""

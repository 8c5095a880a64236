"""A trainer whose module takes longer to import than any limit that a test sets."""

from __future__ import annotations

import os
import time

from variants.heap import train

__all__ = ["train"]

if os.environ.get("UNRULY_CHILD"):
    time.sleep(600)

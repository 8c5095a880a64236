"""An honest trainer whose module takes long to be imported, as a large library does."""

from __future__ import annotations

import time

from variants.heap import train as train

until = time.process_time() + 0.5
while time.process_time() < until:
    sum(range(1000))

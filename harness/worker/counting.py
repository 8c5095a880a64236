"""The call of a counter.

Standard library only, and Python 3.9's: it runs in the measured process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.worker import exchange
from harness.worker.call import MeasuredCall
from harness.worker.calling import arguments_for, expect_known_phases, expect_word_counts


def count(call: MeasuredCall, counter: Any, output: Path) -> dict[str, Any]:
    """Call a counter; return its figures, and leave its words in `output`.

    Raises ValueError if it returns something else than word counts.
    """
    job = call.job
    positional, keywords = arguments_for(
        call.parameters, [call.corpus()], call.meter, {"threads": job.threads}, job.params
    )
    takes_threads = "threads" in keywords

    call.begin()
    word_counts = counter(*positional, **keywords)
    call.mark()

    if call.meter.refused:  # it has not counted everything
        return {**call.figures(takes_threads), "status": "stopped"}
    expect_word_counts(word_counts)
    expect_known_phases(call.meter.seconds)
    figures = call.figures(takes_threads, exchange.seal(word_counts))
    exchange.write_columns(output / "words", word_counts)
    return {**figures, "words_done": len(word_counts)}

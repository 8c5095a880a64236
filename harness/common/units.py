"""How figures are written: seconds, bytes, counts, rates, the bytes of a token. One way for tables,
plots and notes.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Sequence

_TIMES: tuple[tuple[float, float, str], ...] = (
    *((172_800, 86_400, "d"), (7200, 3600, "h"), (999.5, 60, "min")),
    *((0.9995, 1, "s"), (0.9995e-3, 1e-3, "ms"), (0, 1e-6, "µs")),
)
"""Units of time, each with the seconds from which on it is used and its own seconds."""


class BytesRead(int):
    """Progress in bytes of a file, reported by a trainer whose work is otherwise counted in
    merges.
    """


def count_text(number: int) -> str:
    """A count with thousands separators.

    >>> count_text(1203444)
    '1,203,444'
    """
    return f"{number:,}"


def counted_text(number: int, noun: str) -> str:
    """A count with its noun, whose plural ends in s.

    >>> counted_text(1, "thread"), counted_text(0, "thread"), counted_text(1200, "pre-token")
    ('1 thread', '0 threads', '1,200 pre-tokens')
    """
    return f"{count_text(number)} {noun}{'s' * (number != 1)}"


def bytes_text(size: int) -> str:
    """A size in decimal units, as `limits.memory=2GB` is given, to three digits.

    >>> [bytes_text(size) for size in (512, 1500, 91_234_304, 912_000_000, 999_999_999)]
    ['512 B', '1.50 kB', '91.2 MB', '912 MB', '1.00 GB']
    """
    return f"{size} B" if size < 1000 else scaled_text(size, ("kB", "MB", "GB", "TB"), 3)


def scaled_text(number: float, units: Sequence[str], digits: int) -> str:
    """A number of a thousand or more in units that are a thousand of the one before."""
    number, place = number / 1000, 0
    while float(f"{number:.{digits}g}") >= 1000 and place < len(units) - 1:
        number, place = number / 1000, place + 1
    return f"{rate_text(number, digits)} {units[place]}"


def rate_text(number: float, digits: int = 3) -> str:
    """A number to three digits, or more or fewer; whole if it has more.

    >>> [rate_text(rate) for rate in (0.25, 22.31, 485.6, 12345.6)]
    ['0.25', '22.3', '486', '12,346']
    """
    rounded = float(f"{number:.{digits}g}")
    return f"{number:,.{max(0, digits - len(str(int(rounded))))}f}"


def occasions_text(number: int) -> str:
    """
    >>> occasions_text(1), occasions_text(1200)
    ('once', '1,200 times')
    """
    return "once" if number == 1 else f"{count_text(number)} times"


def no_pair_text(min_count: int) -> str:
    """Why training stops early.

    >>> no_pair_text(1), no_pair_text(21)
    ('no pair is left', 'no pair occurs 21 times')
    """
    return f"no pair occurs {occasions_text(min_count)}" if min_count > 1 else "no pair is left"


def ratio_text(ratio: float) -> str:
    """Three digits, on either side of 1.

    >>> [ratio_text(ratio) for ratio in (20_760.4, 999.7, 27.44, 1.0, 0.312, 0.00302)]
    ['20,800', '1,000', '27.4', '1.00', '0.312', '0.00302']
    """
    rounded = float(f"{ratio:.3g}")
    if rounded <= 0:
        return "0"
    return f"{rounded:,.{max(0, 2 - math.floor(math.log10(rounded)))}f}"


def seconds_text(seconds: float, number_text: Callable[[float], str] = ratio_text) -> str:
    """A time to three digits unless `number_text` writes it otherwise; from 1,000 seconds on to two
    or three, in minutes, hours or days.

    >>> [seconds_text(seconds) for seconds in (0.0, 3.81e-5, 0.00917, 0.9996, 34.334, 343.4)]
    ['0 s', '38.1 µs', '9.17 ms', '1.00 s', '34.3 s', '343 s']
    >>> [seconds_text(seconds) for seconds in (5000.0, 40_700, 400_000)]
    ['83 min', '11.3 h', '4.6 d']
    """
    if seconds <= 0:
        return "0 s"
    scale, unit = next((scale, unit) for limit, scale, unit in _TIMES if seconds >= limit)
    number = seconds / scale
    if scale > 1:
        return f"{number:.0f} {unit}" if number >= 20 else f"{number:.1f} {unit}"
    return f"{number_text(number)} {unit}"


def share_text(share: float) -> str:
    """A share in percent, with a decimal where it is small.

    >>> [share_text(share) for share in (0.0042, 0.05, 0.0996, 0.288)]
    ['0.4 %', '5 %', '10 %', '29 %']
    """
    percent = 100 * share
    number = f"{percent:.1f}".removesuffix(".0") if percent < 9.95 else f"{percent:,.0f}"
    return f"{number} %"


def instructions_text(number: int) -> str:
    """A number of instructions to four digits.

    >>> [instructions_text(number) for number in (812, 15_021_976, 531_787_678, 999_996_000, 24_500_000_000)]
    ['812', '15.02 M', '531.8 M', '1.000 G', '24.50 G']
    """
    return count_text(number) if number < 10_000 else scaled_text(number, ("k", "M", "G"), 4)


def token_text(token: bytes, longest: int | None = None) -> str:
    """A token readable: Python's repr without the b; over `longest` characters the middle is left
    out.

    >>> token_text(b"caf\\xc3 "), token_text(b"a" * 600, 20)
    ("'caf\\\\xc3 '", "'aaaaaaaa…aaaaaaaaa'")
    """
    text = repr(token)[1:]
    if longest is None or len(text) <= longest:
        return text
    return f"{text[: (longest - 1) // 2]}…{text[-(longest // 2) :]}"


def one_line(text: str) -> str:
    """Any text on one line: an error's message may have many.

    >>> one_line("no room:\\n  2 GB\\n")
    'no room: 2 GB'
    """
    return " ".join(text.split())


def did_you_mean(name: str, existing: Iterable[str], before: str = "") -> str:
    """The most similar name as a question after a space; nothing if none is similar.

    >>> did_you_mean("hepa", ["heap", "flat"]), did_you_mean("seeds", ["seed=VALUE"])
    (' did you mean heap?', ' did you mean seed=VALUE?')
    >>> did_you_mean("trian", ["table", "tokenizer train"])
    ' did you mean tokenizer train?'
    >>> did_you_mean("--data", ["--data"])  # of another command
    ''
    """
    others = [full for full in existing if full != name]
    names = {full.rpartition(" ")[2].removesuffix("=VALUE"): full for full in others}
    close = difflib.get_close_matches(name, names, 1)
    return f" did you mean {before}{names[close[0]]}?" if close else ""

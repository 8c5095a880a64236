"""The script that draws the charts: Vega, Vega-Lite and Vega-Embed in one, as vl-convert carries them along.

Nothing is downloaded: the package holds them, and the page holds what the package gave.
"""

from __future__ import annotations

import functools

from harness.errors import UNMEASURED, Refusal
from harness.report.page import absent


@functools.cache
def library() -> str:
    """The script, the same for as long as the same package is installed."""
    try:
        import vl_convert
    except ImportError as error:
        raise Refusal(absent("vl-convert-python"), UNMEASURED) from error
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))

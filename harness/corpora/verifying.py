"""A data set's file held against its card, for a person: what was compared, and what came out."""

from __future__ import annotations

from harness.common.errors import OK, UNMEASURED, Refusal
from harness.corpora import prepare
from harness.corpora.cards import ADVICE, OF_THE_COUNT, OF_THE_FILE, Card, differing, facts_of
from harness.corpora.files import check_readable
from harness.corpora.generated import is_table
from harness.corpora.sources import FIND


def verify(card: Card) -> tuple[list[str], int]:
    """What was compared with the card and what came out, a line each; and the exit code.

    Raises Refusal if there is no file.
    """
    name, kind = card["name"], card["source"]["kind"]
    if is_table(card):
        table = prepare(card, [])  # which compares every fact
        return [f"{name}: {table.path}", f"  {table.bytes} bytes of words, as the card says"], OK
    if kind not in FIND:
        raise Refusal(f"{name} is a file of yours, of which nothing is known; there is nothing to compare it with")
    path = FIND[kind](card)
    check_readable(path)
    found = facts_of(path)
    wrong = differing(card, found)
    lines = [f"{name}: {path}"]
    for fact in OF_THE_FILE:
        verdict = "not on the card" if fact not in card["facts"] else "as the card says"
        if fact in wrong:
            verdict = f"the card says {card['facts'][fact]}"
        lines.append(f"  {fact:<8}{found[fact]}  {verdict}")
    counted = [fact for fact in OF_THE_COUNT if fact in card["facts"]]
    if counted:
        lines.append(f"  {', '.join(counted)}: compared when its words are counted (python -m harness data={name})")
    if wrong:
        lines.append(f"  {ADVICE}")
    return lines, UNMEASURED if wrong else OK

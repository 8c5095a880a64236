"""JSON in which one value is not what its readers expect."""

import json
import random
from pathlib import Path

ODD = json.loads(Path(__file__).with_suffix(".json").read_text())


def mutated_json(content: str | bytes, chance: random.Random) -> str:
    """The content with one value, deep or not, replaced by an odd one, taken away or doubled."""
    whole = part = json.loads(content)
    while True:
        key = chance.choice([*part] if isinstance(part, dict) else range(len(part)))
        inner = part[key]
        if not isinstance(inner, dict | list) or not inner or chance.random() < 0.3:
            break
        part = inner

    change = chance.randrange(3)
    if change == 0:
        part[key] = chance.choice(ODD)
    elif change == 1 or isinstance(part, dict):
        del part[key]
    else:
        part.insert(0, inner)
    return json.dumps(whole)

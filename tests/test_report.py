"""The page says what the records say, and nothing in a record is taken for anything but text."""

from __future__ import annotations

import builtins
import copy
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from measured import measured, stopped, stored
from page_reading import Element, drawing, marks_of, read
from shown import explanations

from harness import report as report
from harness.common import registry
from harness.common.errors import MISMATCH, OK, UNMEASURED, USAGE, Refusal
from harness.records.load import read_records
from harness.records.schema import PHASES
from harness.results.chosen import records_of
from harness.results.columns import seconds_columns
from harness.results.legend import Legend, failure_text
from harness.results.page.page import library, page
from harness.results.rows import rows
from harness.runs.reproduction import command_of

RECORDS = Path(__file__).parent / "records"
SETS = {name: read_records([RECORDS / f"{name}.jsonl"]) for name in ("forms", "repeats", "counting", "sweep")}
FORMS, REPEATS, COUNTING, SWEEP = SETS.values()
NO_LIBRARY = "/* draws nothing */"

Record = dict[str, Any]


def page_of(records: list[Record], **options: Any) -> Element:
    return read(page({"": records}, NO_LIBRARY, **options))


def table_cells(tree: Element) -> list[dict[str, Element]]:
    """The rows of the table: for each its cells by heading."""
    table = tree.one("table", id="rows")
    headings = [head.text for head in table.one("thead").all("th")]
    lines = [body.all("tr")[0] for body in table.all("tbody")]
    return [dict(zip(headings, line.all("th") + line.all("td"), strict=True)) for line in lines]


@pytest.mark.parametrize("name", SETS)
def test_the_table_has_a_row_for_each_cell_with_the_texts_of_harness_table(name: str) -> None:
    shown = rows(SETS[name])
    cells = table_cells(page_of(SETS[name]))
    always = [phase for phase in PHASES if phase not in ("convert", "copy")]
    expected = seconds_columns(shown, ["read", "count"] if name == "counting" else always)
    assert [next(iter(line.values())).text for line in cells] == Legend(shown).names
    for column in expected:
        assert [line[column.heading].text for line in cells] == [cell.strip() for cell in column.cells]


def test_cells_are_sorted_by_raw_figures_and_what_is_not_known_has_none() -> None:
    for row, line in zip(rows(FORMS), table_cells(page_of(FORMS)), strict=True):
        key = line["total"].attributes["data-key"]
        expected = row.total if row.total is not None else row.extrapolated.get("low_seconds")
        assert key == ("" if expected is None else str(expected))


def test_every_row_has_the_command_that_measures_it_again() -> None:
    commands = [each.one("code").text for each in page_of(FORMS).all("div", class_="command")]
    assert commands == [" ".join(command_of(row.record).split()) for row in rows(FORMS)]
    assert all(shlex.split(command)[:3] == ["python", "-m", "harness"] for command in commands)


def test_what_failed_is_named_with_its_status_and_shows_no_time() -> None:
    tree = page_of(FORMS)
    told = tree.one("section", id="statuses").text
    for place, (row, line) in enumerate(zip(rows(FORMS), table_cells(tree), strict=True)):
        if row.status == "ok":
            continue
        assert row.status.replace("_", " ") in told
        assert line["status"].text == row.status.replace("_", " ")
        assert not re.match(r"[\d.]+$", line["total"].text)
        assert [bar for bar in marks_of(tree, "phases", "bar") if bar["of"] == place] == []
        for figure in ("phases", "totals"):
            texts = [text["outcome"] for text in marks_of(tree, figure, "text") if text["of"] == place]
            points = [point for point in marks_of(tree, "totals", "point") if point["of"] == place]
            assert texts == [failure_text(row)] or (figure == "totals" and points[0]["proof"] == failure_text(row))
            assert all((point["solid"], point["total, s"]) == (0.0, "-") for point in points)


@pytest.mark.parametrize("name", SETS)
def test_notes_are_those_of_harness_table(name: str) -> None:
    tree = page_of(SETS[name])
    expected = [" ".join(note.split()) for note in explanations(SETS[name])]
    notes = [note.text for section in tree.all("section", id="notes") for note in section.all("li")]
    assert [note for note in expected if note not in notes] == []


def test_a_row_that_one_run_cannot_rank_is_not_called_slower() -> None:
    close = [copy.deepcopy(record) for record in SWEEP[1:4]]
    (said,) = page_of(close).one("section", id="summary").all("p", class_="headline")
    by_total = sorted(rows(close), key=lambda row: row.total or 0)
    rivals = " and ".join(row.name for row in close_to(by_total))
    assert re.fullmatch(rf"{by_total[0].name} [\d.]+ s, level with {rivals}; all 3 identical\.", said.text)


def test_the_first_sentence_says_who_is_fastest_by_how_much_and_whether_merges_are_right() -> None:
    made = [measured("naive", 20.0), measured("flat", 0.4), measured("heap", 0.8), stopped("slow", 20)]
    (said,) = page_of(made).all("p", class_="headline")
    assert said.text == (
        "flat 0.40 s: 2.00 times as fast as heap, 50.0 times as fast as naive; 3 of 4 identical; "
        "1 stopped at the limit."
    )
    both = page_of([*made, measured("flat", 0.1, size=10), measured("heap", 0.3, size=10)])
    assert [each.text.partition(":")[0] for each in both.all("p", class_="headline")] == [
        "stdlib 1.00 MB",
        "stdlib 10 B",
    ]


def test_the_table_has_what_matters_first_and_no_column_that_is_the_same_in_every_row() -> None:
    table = page_of([measured("flat", 0.4), measured("heap", 0.8)]).one("table", id="rows")
    headings = {head.text: head.attributes["class"] for head in table.one("thead").all("th")}
    assert [*headings][:3] == ["variant", "total", "ratio"]
    assert {"data", "status", "read", "memory"}.isdisjoint(headings)
    assert ["minor" in kind for kind in headings.values()][:4] == [False, False, False, True]


def close_to(by_total: list[Any]) -> list[Any]:
    least = by_total[0].total
    return [row for row in by_total[1:] if row.total <= 1.1 * least]


def test_proofs_group_rows_by_their_merges_and_name_the_first_that_differs() -> None:
    tree = page_of(FORMS)
    proofs = tree.one("section", id="proofs").all("article")
    digests = {code.text for proof in proofs for code in proof.all("code")}
    assert digests == {row.record["merges_sha256"] for row in rows(FORMS) if row.status == "ok"}
    wrong = [each.text for proof in proofs for each in proof.all("p", class_="mismatch")]
    assert any("@merge 12: got 'a'+'b', want 'a'+'c'" in text for text in wrong)
    named = {link.text for proof in proofs for link in proof.all("a")}
    assert {row.name for row in rows(FORMS) if row.status in ("ok", "mismatch")} <= {
        text.partition(",")[0] for text in named
    }


def test_two_answers_to_one_question_contradict_each_other() -> None:
    contradicted = copy.deepcopy(SWEEP[1:4])
    contradicted[0]["merges_sha256"] = "0" * 64
    (proof,) = page_of(contradicted).one("section", id="proofs").all("article")
    states = [each.text for each in proof.all("strong")]
    assert len(states) == 2
    assert all(state.startswith("contradicted") for state in states)


def test_the_licence_of_a_corpus_is_that_of_its_card() -> None:
    (corpus,) = page_of(SWEEP).one("section", id="corpora").all("article")
    assert registry.cards("data")["stdlib"]["licence"] in corpus.text
    assert SWEEP[0]["data"]["sha256"] in corpus.text
    own = [{**record, "data": {**record["data"], "name": "my.txt"}} for record in SWEEP]
    (corpus,) = page_of(own).one("section", id="corpora").all("article")
    assert "not known: no card" in corpus.text


def test_what_environments_differ_in_stands_beside_each_other() -> None:
    other = [copy.deepcopy(record) for record in SWEEP[1:3]]
    other[1]["environment"]["packages"]["regex"] = "2030.1.1"
    section = page_of(other).one("section", id="environment")
    line = next(line for line in section.all("tr") if "packages.regex" in line.text)
    assert [cell.text for cell in line.all("td")] == ["2026.11.15", "2030.1.1"]
    assert "AMD EPYC 7B13" in section.one("dl", class_="facts").text


def test_equal_records_give_equal_pages() -> None:
    for records in SETS.values():
        assert page({"": records}, NO_LIBRARY) == page({"": copy.deepcopy(records)}, NO_LIBRARY)


@pytest.mark.slow
def test_the_page_of_the_sweep_is_about_its_records() -> None:
    """Not byte for byte, since the script that draws differs between versions of its package: the records' digest."""
    folder = Path(__file__).parent.parent / "results" / "sweep"
    (command,) = re.findall(r"`python -m harness\.report (.+?)`", (folder / "README.md").read_text(encoding="utf-8"))
    sources = [folder.parent.parent / each for each in command.partition(" --output ")[0].split()]
    records = [dict(record) for record in records_of([str(source) for source in sources])]
    fresh = page_of(records)
    kept = read((folder / "report.html").read_text(encoding="utf-8"))
    digest, old = (tree.one("footer").one("code", class_="digest").text for tree in (fresh, kept))
    assert old == digest, f"results/sweep/report.html is stale; python -m harness.report {command} mends it"
    assert [line["total"].text for line in table_cells(kept)] == [line["total"].text for line in table_cells(fresh)]


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&@ink {{7*7}}"


def hostile(value: Any, name: str = "") -> Any:
    """The record with every text of its own replaced by one that a page must not take at its word."""
    kept = ("status", "cell", "started", "run_id", "state", "sha256", "merges_sha256", "key", "schema")
    if isinstance(value, dict):
        opened = {each: hostile(inner, each) for each, inner in value.items()}
        return {**opened, HOSTILE: 7} if name in ("params", "tallies", "environment") else opened
    if isinstance(value, list):
        return [hostile(inner, name) for inner in value] if name != "curve" else value
    return HOSTILE if isinstance(value, str) and name not in kept and not name.startswith("run_") else value


def test_whatever_a_record_holds_is_text() -> None:
    for records in (SWEEP[:2], COUNTING[:1], [FORMS[-1]]):
        content = page({"": [hostile(record) for record in records]}, NO_LIBRARY)
        tree = read(content)
        assert len(tree.all("script")) == 4
        assert tree.all("img") == []
        assert [element for element in tree.all() if any(name.startswith("on") for name in element.attributes)] == []
        assert HOSTILE in "".join(tree.one("h1")._texts())
        assert any(row["name"] == HOSTILE for row in drawing(tree)["rows"])
        views = [view for chart in drawing(tree)["charts"] for view in chart["views"]]
        specifications = [part["spec"] for view in views for part in (view, *view["layers"])]
        assert specifications
        assert "alert" not in str(specifications)
        assert "alert" not in str([layer.get("words") for view in views for layer in view["layers"]])


def test_a_page_may_fetch_nothing_and_run_nothing_but_its_own_scripts() -> None:
    tree = page_of(SWEEP)
    (policy,) = [each.attributes["content"] for each in tree.all("meta") if "http-equiv" in each.attributes]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "'unsafe-eval'" not in policy
    fetching = [each for each in tree.all() if {"src", "srcset", "poster", "data", "action"} & set(each.attributes)]
    assert fetching == []
    assert tree.all("link") + tree.all("iframe") + tree.all("object") + tree.all("base") == []
    (style,) = tree.all("style")
    assert not re.search(r"url\(|@import", "".join(part for part in style.inside if isinstance(part, str)))


@pytest.mark.parametrize("name", SETS)
def test_every_link_leads_somewhere_in_the_page(name: str) -> None:
    tree = page_of(SETS[name])
    places = [element.attributes["id"] for element in tree.all() if "id" in element.attributes]
    assert len(places) == len(set(places))
    targets = [link.attributes["href"] for link in tree.all("a")]
    assert targets
    assert [target for target in targets if target.removeprefix("#") not in places] == []
    described = [each for element in tree.all() for name in ("aria-labelledby", "aria-controls", "for")
                 for each in element.attributes.get(name, "").split()]  # fmt: skip
    assert [place for place in described if place not in places] == []


def test_everything_that_is_used_has_a_name() -> None:
    tree = page_of(FORMS)
    labelled = {label.attributes["for"] for label in tree.all("label")}
    used = tree.all("select") + tree.all("input")
    assert used
    assert [element for element in used if element.attributes["id"] not in labelled] == []
    assert [button for button in tree.all("button") if not button.text] == []
    heads = tree.one("table", id="rows").one("thead").all("th")
    assert [head for head in heads if head.attributes.get("scope") != "col" or not head.all("button")] == []


def test_only_columns_that_differ_have_a_filter() -> None:
    filters = page_of(FORMS).one("form", id="filters")
    (status,) = [label.attributes["for"] for label in filters.all("label") if label.text == "status"]
    options = [option.text for option in filters.one("select", id=status).all("option")]
    assert options == ["all", *sorted(options[1:])]
    assert {"ok", "unconfirmed", "mismatch", "timeout", "out of memory"} <= set(options)
    assert "data" not in [label.text for label in filters.all("label")]


def test_cells_that_differ_in_one_size_are_a_line_with_its_exponent() -> None:
    grown = []
    for times in (1, 2, 4):
        record = copy.deepcopy(SWEEP[1])
        record["data"] |= {"bytes": 1000 * times, "sha256": str(times) * 64}
        record["seconds"] = {"update": 0.5 * times**2, "total": 0.5 * times**2}
        grown.append(record)
    points = marks_of(page_of(grown), "growth", "point")
    assert [point["x"] for point in points] == [1000, 2000, 4000]
    assert {point["series"] for point in points} == {"incremental, stdlib"}
    assert {point["exponent"] for point in points} == {"n^2.00 ±0.00"}
    assert "growth" not in [chart["name"] for chart in drawing(page_of(SWEEP))["charts"]]


def test_what_was_stopped_is_ranked_by_its_estimate() -> None:
    expected = {"total_seconds": 900.0, "low_seconds": 700.0, "high_seconds": 1000.0}
    made = [measured("heap", 0.8), stopped("naive", 20, extrapolated=expected), stopped("slow", 20)]
    assert [row["takes"] for row in drawing(page_of(made))["rows"]] == [0.8, 900.0, 20]


def test_ratios_to_a_variant_are_a_column() -> None:
    cells = table_cells(page_of(SWEEP, relative_to="incremental"))
    assert cells[1]["total / incremental"].text == "1.00"
    with pytest.raises(Refusal, match="no time of 'nobody' to compare with"):
        page_of(SWEEP, relative_to="nobody")


def test_a_script_that_would_end_itself_is_refused() -> None:
    with pytest.raises(Refusal, match="cannot stand in a page"):
        page({"": SWEEP}, "'</script>'")


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command with a script that draws nothing: the one that does is not needed to look at what is written."""
    monkeypatch.setattr(report, "library", lambda: NO_LIBRARY)


@pytest.mark.usefixtures("without_library")
@pytest.mark.parametrize(("name", "code"), [("forms", MISMATCH), ("sweep", OK)])
def test_the_command_says_where_it_wrote(
    name: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "new folder" / "report.html"
    assert report.main([str(RECORDS / f"{name}.jsonl"), "--output", str(output)]) == code
    assert capsys.readouterr().out == f"wrote {output}\n"
    assert output.read_text(encoding="utf-8") == page({"": SETS[name]}, NO_LIBRARY)
    assert [path.name for path in output.parent.iterdir()] == ["report.html"]


@pytest.mark.usefixtures("without_library")
def test_bad_requests_get_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = str(RECORDS / "sweep.jsonl")
    assert report.main([records, "--output", str(tmp_path / "report.pdf")]) == USAGE
    assert capsys.readouterr().err.endswith("report.pdf; name a file that ends in .html\n")
    (tmp_path / "file").touch()
    assert report.main([records, "--output", str(tmp_path / "file" / "report.html")]) in (USAGE, UNMEASURED)
    assert re.fullmatch(r"cannot write .*report\.html \(.+\); .* --output\n", capsys.readouterr().err)
    (tmp_path / "records.jsonl").touch()
    assert report.main([str(tmp_path), "--output", str(tmp_path / "report.html")]) == UNMEASURED
    assert "python -m harness makes some" in capsys.readouterr().err
    (tmp_path / "in the way.html").mkdir()
    assert report.main([records, "--output", str(tmp_path / "in the way.html")]) in (USAGE, UNMEASURED)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "in the way.html", "records.jsonl"]


def test_without_its_library_the_command_says_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = builtins.__import__

    def absent(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "vl_convert":
            raise ImportError(name)
        return imported(name, *arguments, **named)

    library.cache_clear()
    monkeypatch.setattr(builtins, "__import__", absent)
    output = tmp_path / "report.html"
    assert report.main([str(RECORDS / "sweep.jsonl"), "--output", str(output)]) == UNMEASURED
    assert "pip install -e '.[report]'" in capsys.readouterr().err
    assert not output.exists()


def test_who_does_other_work_is_not_ranked_and_what_was_given_is_said() -> None:
    records = copy.deepcopy(SWEEP[1:4])
    records[2]["seconds"] = {"update": 0.001, "total": 0.001}
    records[2]["identity"] = {"kind": "different_by_design", "reason": "it never merges across digits"}
    records[2]["feeding"] = {"program": "other 1.0", "way_in": "a list of words"}
    records[2] |= {"merges_sha256": "1" * 64, "tie_break": "own", "proof": {"state": "unconfirmed", "by": []}}
    tree = page_of(records)
    ranked = [line.all("td")[1].text for line in tree.one("section", id="summary").one("tbody").all("tr")]
    assert {"multiprocess", "fine_grained"} & set(ranked) == ({"multiprocess"} if len(ranked) == 1 else set(ranked))
    assert "a list of words" in tree.one("section", id="given").text
    assert "different by design" in tree.one("section", id="notes").text
    best = tree.one("section", id="summary").one("tbody").all("tr")[0].all("td")
    assert best[0].text == "2"
    assert best[1].text == "multiprocess"
    assert not any(strong.text.startswith("contradicted") for strong in tree.all("strong"))


def other_set(records: list[Record], times: float = 2.0, **changes: Any) -> list[Record]:
    """The same cells measured again, some times slower."""
    made = []
    for record in records:
        seconds = {name: each and each * times for name, each in record["seconds"].items()}
        made.append({**copy.deepcopy(record), "seconds": seconds, "run_id": "2026-11-23T09:00:00+00:00", **changes})
    return made


@pytest.fixture
def two_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Write two sets, `old.jsonl` and `new.jsonl`, into the folder that the test is in."""
    monkeypatch.chdir(tmp_path)

    def written(**changes: Any) -> None:
        for name, records in {"old": SWEEP[1:4], "new": other_set(SWEEP[1:4], **changes)}.items():
            stored(tmp_path / f"{name}.jsonl", records)

    return written


COMPARE = ["--compare", "old.jsonl", "new.jsonl", "--output", "both.html"]


@pytest.mark.usefixtures("without_library")
def test_two_sets_stand_side_by_side_with_their_ratios(two_sets: Callable[..., None]) -> None:
    two_sets()
    assert report.main(COMPARE) == OK
    tree = read(Path("both.html").read_text(encoding="utf-8"))
    lines = tree.one("section", id="comparison").one("tbody").all("tr")
    headings = [head.text for head in tree.one("section", id="comparison").one("thead").all("th")]
    ratios = [dict(zip(headings, line.all("th") + line.all("td"), strict=True))["right / left"].text for line in lines]
    assert ratios == ["2.00"] * 3
    assert [line["set"].text for line in table_cells(tree)] == ["old.jsonl", "new.jsonl"] * 3
    points = marks_of(tree, "ratios", "point")
    assert [(point["of"], point["right / left"]) for point in points] == [(1, "2.00"), (3, "2.00"), (5, "2.00")]
    assert tree.one("h1").text == "BPE training: old.jsonl beside new.jsonl"
    assert "one run" in tree.one("section", id="comparison").text


@pytest.mark.usefixtures("without_library")
@pytest.mark.parametrize(("key", "value", "unlike"), [("host", "ffffffff", "host"), ("threads", 7, "threads")])
def test_sets_that_are_unlike_are_refused_unless_told(
    key: str, value: Any, unlike: str, two_sets: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    two_sets(**{key: value})
    assert report.main(COMPARE) == USAGE
    said = capsys.readouterr().err
    assert f"unlike in {unlike}" in said
    assert f"--unlike {unlike}" in said
    assert not Path("both.html").exists()
    assert report.main([*COMPARE, "--unlike", unlike]) == OK
    assert f"Compared although unlike in {unlike}" in read(Path("both.html").read_text(encoding="utf-8")).text


@pytest.mark.usefixtures("without_library")
def test_another_corpus_of_the_same_name_is_refused_and_said(
    two_sets: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    two_sets(data={**SWEEP[1]["data"], "sha256": "9" * 64})
    assert report.main(COMPARE) == USAGE
    assert "unlike in corpus (stdlib" in capsys.readouterr().err


@pytest.mark.usefixtures("without_library")
def test_merges_that_differ_between_two_sets_are_a_mismatch(two_sets: Callable[..., None]) -> None:
    two_sets(merges_sha256="5" * 64)
    assert report.main(COMPARE) == MISMATCH
    tree = read(Path("both.html").read_text(encoding="utf-8"))
    assert "ratios" not in [chart["name"] for chart in drawing(tree)["charts"]]
    states = [each.text for each in tree.one("section", id="proofs").all("strong")]
    assert all(state.startswith("contradicted") for state in states)


@pytest.mark.usefixtures("without_library")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--unlike", "host"], "--unlike goes with --compare"),
        (["more.jsonl", *COMPARE], "--compare takes the two sets itself"),
        ([*COMPARE, "--relative-to", "heap"], "does not go with --compare"),
        (["--compare", "old.jsonl", "old.jsonl"], "twice; name two sets"),
        ([*COMPARE, "--unlike", "weather"], "weather"),
    ],
)
def test_what_does_not_go_together_gets_one_sentence(
    arguments: list[str], said: str, two_sets: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    two_sets()
    assert report.main(arguments) == USAGE
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1

"""A download ends with the whole file or with one sentence, whatever the server does."""

from __future__ import annotations

import contextlib
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from exploring import examples
from fetched import impatient
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from local_server import (
    Behaviour,
    Server,
    another_range,
    cut_after,
    no_ranges,
    no_ranges_cut_after,
    now_another_version,
    refuse,
    serve,
    serving,
    stall_after,
    without_length,
)

from harness.common.errors import UNMEASURED, Refusal
from harness.corpora.fetch import Download

CONTENT = bytes(range(256)) * 400
OTHER = CONTENT[::-1]
SOON_TIRED = 0.5
"""Seconds for servers that stall; a busy machine lets others wait as well."""


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(CONTENT) as server:
        yield server


def silently(_done: int, _total: int | None) -> None:
    pass


def get(server: Server, folder: Path, *script: Behaviour, reserve: int = 0, seconds: float = 30) -> bytes:
    server.script[:] = script
    place = folder / "corpus.txt"
    with impatient(seconds):
        Download(f"{server.address}/corpus.txt", place, silently, {}, reserve).run()
    assert [path.name for path in folder.iterdir() if "corpus" in path.name] == [place.name]
    return place.read_bytes()


def refusal_of(server: Server, folder: Path, *script: Behaviour, seconds: float = 30) -> str:
    with pytest.raises(Refusal) as refused:
        get(server, folder, *script, seconds=seconds)
    assert not (folder / "corpus.txt").exists()
    assert refused.value.exit_code == UNMEASURED
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("length", [0, 1, 50_000, len(CONTENT) - 1])
def test_a_truncated_body_is_resumed_where_it_ended(server: Server, tmp_path: Path, length: int) -> None:
    assert get(server, tmp_path, cut_after(length)) == CONTENT
    assert server.ranges() == [None, f"bytes={length}-" if length else None]


def test_stalled_connection_is_resumed_or_given_up(server: Server, tmp_path: Path) -> None:
    sentence = refusal_of(server, tmp_path, stall_after(1000), *[stall_after(0)] * 3, seconds=SOON_TIRED)
    assert "did not arrive whole (no byte came for too long)" in sentence
    assert "1000 bytes have arrived, run the same command again to resume" in sentence
    assert get(server, tmp_path, stall_after(1000), seconds=SOON_TIRED) == CONTENT
    assert server.ranges()[-2:] == ["bytes=1000-", "bytes=2000-"]


def test_a_redirect_is_followed_and_resumed_through(server: Server, tmp_path: Path) -> None:
    there = refuse(302, Location=f"{server.address}/elsewhere")
    assert get(server, tmp_path, there, cut_after(500), there) == CONTENT
    assert server.ranges() == [None, None, "bytes=500-", "bytes=500-"]


@pytest.mark.parametrize("behaviour", [without_length, serve])
def test_no_more_comes_than_the_card_allows(server: Server, tmp_path: Path, behaviour: Behaviour) -> None:
    server.script[:] = [behaviour]
    place = tmp_path / "corpus.txt"
    with pytest.raises(Refusal, match="has more than the 1000 bytes that its card allows"):
        Download(f"{server.address}/corpus.txt", place, silently, {}, longest=1000).run()
    assert list(tmp_path.iterdir()) == []


def test_secret_is_not_sent_to_a_redirect(server: Server, tmp_path: Path) -> None:
    server.script[:] = [refuse(302, Location=f"{server.address.replace('127.0.0.1', 'localhost')}/elsewhere")]
    Download(server.address, tmp_path / "x", silently, {"Authorization": "Bearer secret"}).run()
    assert ["Authorization" in headers for headers in server.requests] == [True, False]


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 429, 451, 500, 502, 503, 504])
def test_only_statuses_that_may_change_are_retried(server: Server, tmp_path: Path, code: int) -> None:
    if code in (429, 500, 502, 503, 504):
        assert get(server, tmp_path, refuse(code), refuse(code)) == CONTENT
        assert f"it answers {code}" in refusal_of(server, tmp_path / "..", *[refuse(code)] * 3)
        return
    assert f"{server.address}/corpus.txt answers {code}" in refusal_of(server, tmp_path, refuse(code))
    assert len(server.requests) == 1


def test_another_version_is_never_joined_to_the_first(server: Server, tmp_path: Path) -> None:
    assert get(server, tmp_path, cut_after(5000), no_ranges) == CONTENT
    assert get(server, tmp_path, without_length) == CONTENT
    assert get(server, tmp_path, cut_after(5000), now_another_version(OTHER)) == OTHER
    assert server.requests[-1]["If-Range"] == '"first"'


@pytest.mark.parametrize("tag", [None, 'W/"first"'])
def test_nothing_is_resumed_unless_its_version_is_certain(server: Server, tmp_path: Path, tag: str | None) -> None:
    server.tag = tag
    assert get(server, tmp_path, cut_after(5000), serve) == CONTENT
    assert server.ranges() == [None, None]


@pytest.mark.parametrize(
    "url", ["corpus.txt", "file:///etc/hostname", "gopher://moon.invalid/", "http://127.0.0.1:port/", "http://a b/"]
)
def test_invalid_address_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(Refusal, match="cannot be fetched"):
        Download(url, tmp_path / "x", silently, {}).run()


def test_missing_network_is_reported_at_once(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/corpus.txt"
        sentence = r"cannot reach 127\.0\.0\.1:\d+ \(Connection refused\); if this machine is off"
        with pytest.raises(Refusal, match=sentence):
            Download(address, tmp_path / "x", silently, {}).run()


def test_missing_room_is_reported_before_anything_is_written(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = shutil.disk_usage(tmp_path)._replace(free=len(CONTENT) + 9)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    with pytest.raises(Refusal, match=r"needs 102 kB in .*, and 102 kB are free; make room, or set BPE_HARNESS_CACHE"):
        get(server, tmp_path, reserve=10)
    assert not (tmp_path / "corpus.txt.part").exists()
    assert get(server, tmp_path, reserve=9) == CONTENT


BEHAVIOURS = st.one_of(
    st.integers(0, len(CONTENT)).map(cut_after),
    st.integers(0, len(CONTENT)).map(no_ranges_cut_after),
    st.sampled_from([serve, no_ranges, another_range, refuse(503), refuse(404), now_another_version(OTHER)]),
    st.integers(0, len(CONTENT)).map(lambda length: now_another_version(OTHER, cut_after(length))),
)


@pytest.mark.slow
@given(st.lists(st.lists(BEHAVIOURS, max_size=5), min_size=1, max_size=3))
@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_file_is_one_whole_version(tmp_path_factory: pytest.TempPathFactory, calls: list[list[Behaviour]]) -> None:
    folder = tmp_path_factory.mktemp("download")
    place = folder / "corpus.txt"
    with serving(CONTENT) as server:
        for script in calls:
            with contextlib.suppress(Refusal):
                get(server, folder, *script)
            assert not place.exists() or place.read_bytes() in (CONTENT, OTHER)
            place.unlink(missing_ok=True)
        assert get(server, folder) == server.content

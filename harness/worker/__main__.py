"""The measured process: imports a target, reads the job, calls one counter or trainer, writes one
answer.

Run as `python -m harness.worker`, on the standard library alone, so it starts small and under any
interpreter. The work is read after the import, so an import cannot know it. A thread looks up ten
times a second: it reports progress, obeys a request to stop, and ends the whole process group if
the parent is gone.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.worker import (
    ANSWER,
    BEHIND_THE_STANDARD_LIBRARY,
    CHANNEL,
    JOB,
    JOB_FOLDER,
    STOP,
    WORK,
)
from harness.worker.call import (
    IMPORTED,
    Channel,
    MeasuredCall,
    clock,
    count,
    how_it_is_fed,
    imported_files,
    merges_so_far,
    train,
)
from harness.worker.calling import (
    of_module,
    own_frames,
    parameters_of,
    resolve,
    shortened,
    where_raised,
)
from harness.worker.exchange import COUNT, Setup, read_job, read_setup
from variants import vetoes
from variants.contract import InvalidText, LeftOut, Unavailable

SECONDS_TO_STOP = 1.0
SECONDS_BETWEEN_LOOKS = 0.1
LONGEST_REASON = 2000
BACKSTOP_BYTES = 256 << 20
ALGORITHMS = vetoes.__file__.rpartition(os.sep)[0] + os.sep


def main() -> None:
    """Import the target, read the work, call the target, answer."""
    folder = Path(os.environ[JOB_FOLDER])
    setup = read_setup((folder / JOB).read_text())
    channel = Channel(int(os.environ[CHANNEL]))
    sys.path[BEHIND_THE_STANDARD_LIBRARY] = setup.import_from
    os.chdir(setup.folder)
    if setup.memory_limit is not None:
        set_backstop(setup.memory_limit + BACKSTOP_BYTES)

    process = MeasuredProcess(setup, folder, channel)
    process.write(process.run())
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):  # a trainer may have closed or replaced it
            stream.flush()
    os._exit(0)  # a thread that a trainer left must not keep the process alive


def set_backstop(limit: int) -> None:
    """Limit what grows faster than the harness looks; RLIMIT_AS would refuse large mappings of
    files.
    """
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


@dataclass
class MeasuredProcess:
    """One call from the import of its target to its answer, and the thread that looks up
    meanwhile.
    """

    setup: Setup
    output: Path
    channel: Channel
    parent: int = field(default_factory=os.getppid)
    call: MeasuredCall | None = None
    writing: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> dict[str, Any]:
        """Import and call the target; every way in which that ends is an answer."""
        try:
            target = resolve(self.setup.target)
            if (prepare := of_module(target, "before_the_clock")) is not None:
                prepare()  # what its module needs once on a machine
            # Looking may run code of the target's own, which must not know the work.
            parameters = parameters_of(target)
            imported = imported_files()
            if self.setup.counts_instructions:
                forget_garbage()
            else:  # another thread's instructions would be counted too
                threading.Thread(target=self.watch, daemon=True).start()

            self.channel.announce(IMPORTED, None)
            job = read_job((self.output / WORK).read_text())
            self.call = MeasuredCall(job, parameters, imported, self.channel)
            if job.kind == COUNT:
                return count(self.call, target, self.output)
            return train(self.call, target)
        except Unavailable as reason:
            return {
                "status": "skipped",
                "reason": str(reason)[:LONGEST_REASON] or "it does not say why",
            }
        except MemoryError:
            return {
                "status": "out_of_memory",
                "reason": "an allocation failed under the memory limit",
            }
        except (InvalidText, LeftOut) as error:
            return {**failed(error), "reason": str(error), "offset": error.offset}
        except BaseException as error:  # whatever a trainer raises, SystemExit too, is a result
            return failed(error)

    def write(self, answer: dict[str, Any]) -> None:
        """Write the merges, then the answer; of two threads only the first does."""
        self.writing.acquire()
        merges = answer.pop("packed_merges", None)
        if merges is not None:
            (self.output / "merges").write_bytes(merges)
        partial = self.output / "answer.partial"
        partial.write_text(json.dumps(answer))
        partial.rename(self.output / ANSWER)

    def watch(self) -> None:
        """Report until the process ends, or the harness asks to stop, or the parent is gone."""
        stop_by = None
        while True:
            time.sleep(SECONDS_BETWEEN_LOOKS)
            if stop_by is None and os.path.exists(self.output / STOP):  # noqa: PTH110 - this runs beside the call
                stop_by = clock() + self.ask_to_stop()
            if os.getppid() != self.parent:
                os.killpg(0, signal.SIGKILL)
            if stop_by is not None and clock() >= stop_by:
                self.write(self.stopped())
                os._exit(0)
            with contextlib.suppress(Exception):  # what the meter follows is the trainer's own
                self.report()

    def ask_to_stop(self) -> float:
        """Have the meter answer stop; return how many seconds the call gets to obey."""
        if self.call is None:
            return 0.0
        self.call.meter.stopping = True
        return SECONDS_TO_STOP if self.call.meter.has_polled else 0.0

    def stopped(self) -> dict[str, Any]:
        """Return the answer for a call that goes on, with the merges made so far; without figures
        before it begins.
        """
        call = self.call
        if call is None or not call.begun:
            return {"status": "stopped", "reason": None}
        answer = {**call.figures(), "status": "stopped"}
        if call.job.kind != COUNT:
            with contextlib.suppress(Exception):
                answer.update(feeding=how_it_is_fed(call))
            with contextlib.suppress(ValueError):  # the meter follows something else than merges
                answer.update(merges_so_far(call))
        return answer

    def report(self) -> None:
        """Report progress: the number of merges made, or of bytes while a trainer reads the
        file.
        """
        if self.call is None:
            return
        meter = self.call.meter
        merges = len(meter.followed)
        if self.call.from_file and not merges:
            self.channel.send(b"%d bytes" % meter.done)
        else:
            self.channel.send(b"%d" % (merges or meter.done))


def forget_garbage() -> None:
    """Have Python's collector start from nothing, whatever was imported or compiled before.

    Else a collection of everything falls into the call or not, which is a percent of its
    instructions.
    """
    gc.collect()
    gc.freeze()
    gc.collect()


def failed(error: BaseException) -> dict[str, Any]:
    """Return the answer for an exception, with its kind and place unless it is a sentence of this
    project's; its traceback goes to standard error, whatever sys.stderr is now.
    """
    with contextlib.suppress(OSError):  # standard error may be closed
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        os.write(2, text.encode(errors="replace"))
    kind, message, frames = type(error).__name__, str(error), own_frames(error)
    is_ours = not frames or frames[-1].filename.startswith(ALGORITHMS)
    if isinstance(error, (OSError, ValueError)) and is_ours:
        return {"status": "error", "reason": shortened(message or kind)}

    reason = shortened(f"{kind}: {message}") if message else kind
    reason += where_raised(error)
    if isinstance(error, ModuleNotFoundError):
        reason += "; install its package, such as with python -m pip install -e FOLDER"
    return {"status": "error", "reason": reason}


if __name__ == "__main__":
    main()

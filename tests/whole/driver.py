"""Starts the processes of a round, kills and interrupts them at random, starts them again, and has the rest judged.

A round is a new file: some have format version 1, some the durability `power`. All is drawn from a seed. The system
decides how processes come between each other, so a seed gives the same faults and not the same history.

Whatever ends a run, SIGTERM as well, ends its processes; what was there then is kept, and its place is told.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType

from adjoin import FileBusy, Graph, TableNotFound
from adjoin.expressions import Set, Value, attribute
from adjoin.requests import CreateTable, Update
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import KeyAttribute, TableDefinition
from tests.stores.sqlite.test_file import make_version_1
from tests.waiting import LIMIT, until
from tests.whole import clocked, models, older
from tests.whole.figures import Figures
from tests.whole.journal import Broken, Journal, Operation, replayed
from tests.whole.judge import finish_deletes, judge, rows
from tests.whole.subjects import plain

ROOT = Path(__file__).resolve().parents[2]
_FORKING = get_context("forkserver")
_FORKING.set_forkserver_preload(clocked.PRELOADED)
JUMP = 11 * 3600
"""Seconds by which a clock may be wrong: any two then differ by less than the day for which changes are kept."""
SERVER_JUMP = 240
"""The same for the server, which knows a transaction again for ten minutes by its clock."""
_EXPIRE = 66
"""Seconds for which credentials are good; adjoin uses none for the last 60 of them."""
_AFTER_INTERRUPT = (0, 130)
"""How a command ends that was interrupted: as one that was asked to, or unfinished."""
_MODULE = "tests.whole.models"
_SPARED = 0.8
"""How often one is left alone that has not begun yet, so that most are at work when they are hit."""
_PAUSE = 0.6
"""Seconds between two faults, at most."""
_OLD_EDGES = 1000
"""Edges of the largest node of an older adjoin, at most: one that makes very many is enough for a file."""
_REPAIRED = re.compile(r"faults?, ([\d,]+) repaired in ")
_PAIRS = """
import datetime, json, pathlib, sys
pair = json.loads(pathlib.Path(sys.argv[1]).read_text())
with open(sys.argv[1] + ".asked", "a") as asked:
    asked.write(".")
ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=int(sys.argv[2]))
print(json.dumps({"Version": 1, "AccessKeyId": pair[0], "SecretAccessKey": pair[1], "Expiration": ends.isoformat()}))
"""
"""A program that provides credentials, as AWS's own configuration names one."""


@dataclass
class Actor:
    """A process that is started again whenever it is gone."""

    name: str
    command: list[str]
    folder: Path
    environment: Callable[[], dict[str, str]]
    ends: tuple[int, ...] = ()
    """Exit statuses with which it may end by itself."""
    jump: int = JUMP
    patience: float = LIMIT
    """Seconds after which it will not end any more."""
    older: Path | None = None
    """The sources of another adjoin, which it runs. An interrupt within a write is what that could not bear."""
    process: subprocess.Popen[bytes] | BaseProcess | None = None

    def __post_init__(self) -> None:
        self.clock, self.ready, self.said = (self.folder / f"{self.name}.{each}" for each in ("clock", "ready", "said"))
        self.clock.write_text("0")

    def start(self) -> None:
        self.ready.unlink(missing_ok=True)
        program, *arguments = self.command
        driver = str(os.getpid())
        environment = self.environment()
        if self.older is None:
            how = (environment, str(self.said), driver, str(self.clock), str(self.ready), program, arguments)
            self.process = _FORKING.Process(target=clocked.forked, args=how)
            self.process.start()
            return
        with self.said.open("wb") as said:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.whole.clocked",
                    driver,
                    str(self.clock),
                    str(self.ready),
                    program,
                    *arguments,
                ],
                cwd=ROOT,
                env=os.environ | environment | {"PYTHONPATH": str(self.older)},
                stdout=said,
                stderr=said,
            )

    def ended(self) -> int | None:
        if isinstance(self.process, subprocess.Popen):
            return self.process.poll()
        return None if self.process is None else self.process.exitcode

    def wait(self) -> int | None:
        """How it ended, if it ever does."""
        if isinstance(self.process, subprocess.Popen):
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(self.patience)
        elif self.process is not None:
            self.process.join(self.patience)
        return self.ended()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.wait()

    def interrupt(self) -> bool:
        """Whether it is there to be interrupted."""
        if not self.ready.exists() or self.older is not None or self.process is None or self.process.pid is None:
            return False
        if self.ended() is None:
            os.kill(self.process.pid, signal.SIGINT)
        return True

    def check(self, allowed: tuple[int, ...]) -> int:
        """The exit status, which must be one of these."""
        status = self.wait()
        said = self.said.read_text(errors="replace")
        if status not in allowed or "Traceback" in said:
            raise Broken(f"{self.name} ended with status {status}:\n{said[-4000:]}")
        return status


class Round:
    def __init__(self, folder: Path, seed: int, number: int, edges: int, old: Path | None, figures: Figures) -> None:
        self.chance = random.Random(f"{seed} {number}")
        self.folder, self.edges, self.figures, self.old = folder, edges, figures, old
        self.file, self.copy, self.stop = folder / "whole.db", folder / "copy.db", folder / "stop"
        self.version = 1 if number % 2 else 2
        self.durability = "power" if number % 4 == 2 else "process"
        self.location = f"{self.file}?durability={self.durability}"
        self.pair = folder / "pair.json"
        self.journals: dict[str, Path] = {}
        self.finished: set[str] = set()
        """Commands that came to an end by themselves."""
        self.is_spoilt = number % 3 == 2
        """Whether somebody else writes aggregates meanwhile, so that they have to be repaired at the end."""
        self.is_rebuilt = number % 3 == 1
        """Whether aggregates are rebuilt meanwhile."""
        self.patience = LIMIT * max(1.0, edges / 1000)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        figures.versions[f"format {self.version}, durability {self.durability}"] += 1

    # --- before --------------------------------------------------------------------------------

    def set_up(self) -> list[Actor]:
        self._make_file()
        self._replace_pair()
        (self.folder / "config").write_text(
            f"[default]\nregion = us-east-1\ncredential_process = {sys.executable} {self.folder / 'pairs.py'}"
            f" {self.pair} {_EXPIRE}\n"
        )
        (self.folder / "pairs.py").write_text(_PAIRS)
        served = f"http://127.0.0.1:{self.port}"
        graph = f"dynamodb://{models.TABLE}?region=us-east-1&endpoint={served}&timeout=5&deadline=10"
        return [
            self._worker("persons", "p0", self.location),
            self._worker("persons", "p1", graph),
            self._worker("hubs", "h0", self.location),
            self._worker("topics", "topics", self.location),
            self._worker("plain", "b0", served),
            *self._older(),
            self._command("maintain 1", "maintain", self.location, _MODULE, "--every", "0.2"),
            self._command("maintain 2", "maintain", self.location, _MODULE, "--every", "0.1"),
            # Edges whose ends come later are found, and left alone.
            self._command("verify", "verify", str(self.file), _MODULE, "--repair", "--quiet", ends=(0, 1, 3)),
            *([self._command("rebuild", "rebuild", str(self.file), _MODULE, "--quiet", ends=(0,))] * self.is_rebuilt),
            self._command("copy", *self._copying(), ends=(0,)),
            self._command("serve", *self._serving(), jump=SERVER_JUMP),
        ]

    def _command(self, name: str, *arguments: str, ends: tuple[int, ...] = (), jump: int = JUMP) -> Actor:
        return Actor(name, ["adjoin", *arguments], self.folder, self._environment, ends, jump, self.patience)

    def _make_file(self) -> None:
        if self.version == 1:
            make_version_1(self.file)
        store = SQLiteStore(self.file)
        text = KeyAttribute("PK", "S"), KeyAttribute("SK", "S")
        store.execute([CreateTable(TableDefinition(plain.TABLE, *text))])
        store.close()
        with Graph(self.file, models.MODELS) as g:
            g.put_many([models.Topic(id=topic, name=topic) for topic in models.TOPICS])
        journal = Journal(self.folder / "topics.journal")
        journal.begun(Operation("make", {f"topic:{topic}": topic for topic in models.TOPICS}))
        journal.done()
        journal.close()

    def _replace_pair(self) -> None:
        pair = [f"AK{self.chance.getrandbits(60):x}", f"{self.chance.getrandbits(120):x}"]
        # Renamed into place, so that nobody reads half of it.
        new = self.pair.with_suffix(".new")
        new.write_text(json.dumps(pair))
        new.rename(self.pair)

    def _environment(self) -> dict[str, str]:
        access, secret = json.loads(self.pair.read_text())
        return {
            "AWS_CONFIG_FILE": str(self.folder / "config"),
            plain.PAIR: str(self.pair),
            "ADJOIN_ACCESS_KEY": access,
            "ADJOIN_SECRET_KEY": secret,
            "AWS_SHARED_CREDENTIALS_FILE": str(self.folder / "none"),
        }

    def _copying(self) -> list[str]:
        return ["copy", str(self.file), f"{self.copy}?durability=process", "--table", models.TABLE, "--quiet"]

    def _serving(self) -> list[str]:
        return ["serve", str(self.file), "--port", str(self.port), "--durability", self.durability]

    def _worker(self, subject: str, name: str, location: str, most: int | None = None) -> Actor:
        journal = self.journals[name] = self.folder / f"{name}.journal"
        seed = str(self.chance.random())
        edges = self.edges if most is None else min(self.edges, most)
        arguments = [subject, name, location, str(journal), str(self.stop), seed, str(edges)]
        return Actor(name, ["tests.whole.worker", *arguments], self.folder, self._environment, patience=self.patience)

    def _older(self) -> list[Actor]:
        """A worker of an adjoin that knows version 1 only, where it can be had; it refuses what it does not know."""
        if self.old is None:
            return []
        if self.version == 1:
            actor = self._worker("hubs", "old", self.location, _OLD_EDGES)
            actor.older = self.old
            return [actor]
        before = self.file.read_bytes()
        done = subprocess.run(
            [sys.executable, "-m", "adjoin", "show", str(self.file)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(self.old)},
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        if done.returncode == 0 or "format version 2" not in done.stderr or self.file.read_bytes() != before:
            raise Broken(f"an older adjoin was let into a file of version 2: {done}")
        self.figures.refused += 1
        return []

    # --- meanwhile -----------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        actors = self.set_up()
        try:
            for actor in actors:
                actor.start()
            self._wait_for_all(actors)
            over = time.monotonic() + seconds
            while time.monotonic() < over or not self._has_deleted_large():
                if time.monotonic() > over + self.patience:
                    raise Broken("no node of the largest kind was ever deleted")
                time.sleep(self.chance.random() * _PAUSE)
                self._revive(actors)
                self._disturb(actors)
            self._end(actors)
        finally:
            for actor in actors:
                if actor.process is not None and actor.ended() is None:
                    actor.kill()

    def _wait_for_all(self, actors: list[Actor]) -> None:
        """Until every worker is at work: on a slow machine nobody would be hit in the middle of anything else."""

        def all_are_at_work() -> bool:
            self._revive(actors)
            return all(replayed(path).acknowledged.total() > 1 for path in self.journals.values())

        until(all_are_at_work, looks_every=0.1)

    def _has_deleted_large(self) -> bool:
        """Whether a node with as many edges as there may be was deleted, however slow the machine is."""
        told = replayed(self.journals["h0"])
        is_at_it = told.unfinished is not None and len(told.unfinished.changes) > self.edges // 2
        return is_at_it or told.largest > self.edges // 2

    def _wait_for_commands(self, actors: list[Actor]) -> None:
        """Until those that come to an end by themselves did so once, however slow the machine is."""
        wanted = {actor.name for actor in actors if actor.ends}

        def all_have_ended() -> bool:
            self._revive(actors)
            return wanted <= self.finished

        until(all_have_ended, looks_every=0.1, limit=self.patience)

    def _revive(self, actors: list[Actor]) -> None:
        for actor in actors:
            if actor.ended() is None:
                continue
            self._ended(actor, actor.check(actor.ends))
            self._start(actor)

    def _start(self, actor: Actor) -> None:
        if actor.name == "copy":
            if any(self.folder.glob("whole.db.copy-*.json")):
                self.figures.resumed += 1
            else:
                self._remove_copy(actor)
        actor.start()

    def _remove_copy(self, actor: Actor) -> None:
        """Where nothing tells that a copy is unfinished, it must have said that it is finished, or holds nothing."""
        said = actor.said.read_text(errors="replace") if actor.said.exists() else ""
        if "copied to" not in said and self.copy.exists():
            with suppress(TableNotFound):
                if rows(self.copy, models.TABLE):
                    raise Broken(f"a copy that said {said!r} holds items, and cannot be gone on with")
        for ending in ("", "-wal", "-shm"):
            Path(f"{self.copy}{ending}").unlink(missing_ok=True)

    def _ended(self, actor: Actor, status: int) -> None:
        """What a command leaves that came to its end by itself."""
        self.figures.ended[f"{actor.name} {status}"] += 1
        self.finished.add(actor.name)
        if found := _REPAIRED.search(actor.said.read_text(errors="replace")):
            self.figures.repaired += int(found[1].replace(",", ""))

    def _disturb(self, actors: list[Actor]) -> None:
        actor = self.chance.choice(actors)
        how = self.chance.random()
        if not actor.ready.exists() and self.chance.random() < _SPARED:
            return
        if how < 0.45:
            self._kill(actor)
            self._start(actor)
        elif how < 0.75:
            self._interrupt(actor)
        elif how < 0.85 and self.is_spoilt:
            self._spoil()
        elif how < 0.95:
            actor.clock.write_text(str(self.chance.uniform(-actor.jump, actor.jump)))
            self.figures.jumps += 1
        else:
            (server,) = (actor for actor in actors if actor.name == "serve")
            self._kill(server)
            self._replace_pair()
            self.figures.pairs += 1
            self._start(server)

    def _kill(self, actor: Actor) -> None:
        actor.kill()
        if actor.ended() == -signal.SIGKILL:
            self.figures.kills[actor.name] += 1
        else:
            # It was faster.
            self._ended(actor, actor.check(actor.ends))

    def _interrupt(self, actor: Actor) -> None:
        if not actor.interrupt():
            return
        self.figures.interrupts[actor.name] += 1
        if actor.name in self.journals:
            # A worker goes on.
            return
        status = actor.check((*_AFTER_INTERRUPT, *actor.ends))
        if status in actor.ends:
            # It was faster.
            self._ended(actor, status)
        self._start(actor)

    def _spoil(self) -> None:
        """Writes aggregates that nobody may write."""
        key = {"PK": {"S": f"TOPIC#{self.chance.choice(models.TOPICS)}"}, "SK": {"S": "#META"}}
        name = self.chance.choice(("followers", "weight", "listed"))
        store = SQLiteStore(self.file, durability="process")
        with suppress(FileBusy):
            value = Value({"N": str(self.chance.randrange(1000))})
            store.execute([Update(models.TABLE, key, (Set(attribute(name), value),))])
            self.figures.spoilt += 1
        store.close()

    # --- at the end ----------------------------------------------------------------------------

    def _end(self, actors: list[Actor]) -> None:
        by_name = {actor.name: actor for actor in actors}
        self.stop.touch()
        for name in self.journals:
            by_name[name].check((0,))
        self._wait_for_commands([actor for actor in actors if actor.name not in self.journals])
        copy = by_name.pop("copy")
        for actor in by_name.values():
            actor.kill()
        if copy.ended() is None:
            copy.kill()
        else:
            self._ended(copy, copy.check(copy.ends))
        told = {name: replayed(path) for name, path in self.journals.items()}
        finish_deletes(self.file, told)
        with Graph(self.location, models.MODELS) as g:
            g.maintain(once=True)
            if self.is_spoilt:
                g.verify(repair=True)
                g.maintain(once=True)
        # Whatever it was at, it goes on and includes what was written since.
        copy.clock.write_text("0")
        self._start(copy)
        copy.check((0,))
        judge(self.file, self.copy, told)
        for name, each in told.items():
            self.figures.add(name, each)
        asked = self.folder / f"{self.pair.name}.asked"
        self.figures.asked += asked.stat().st_size if asked.exists() else 0
        self.figures.rounds += 1


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """SIGTERM is an exception here, so that whatever was started is ended."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def simulate(
    seconds: float, seed: int, *, edges: int = 300, round_seconds: float = 12.0, first: int = 0, least: int = 1
) -> Figures:
    """Rounds from the first on until the time is over, `least` of them; the last is brought to its end."""
    figures = Figures()
    over = time.monotonic() + seconds
    number = first
    with _ended_in_order(), tempfile.TemporaryDirectory(prefix="adjoin-whole-") as name:
        old = older.sources(Path(name) / "older")
        while number < first + least or time.monotonic() < over:
            folder = Path(name) / str(number)
            folder.mkdir()
            try:
                Round(folder, seed, number, edges, old, figures).run(round_seconds)
            except BaseException as error:
                kept = Path(tempfile.mkdtemp(prefix="adjoin-whole-kept-"))
                shutil.move(folder, kept)
                error.add_note(
                    f"in round {number} of seed {seed}; its file and its journals are in {kept / folder.name}, and its"
                    f" faults are those of: python -m tests.whole --seconds 1 --seed {seed} --first {number}"
                    f" --edges {edges} --round {round_seconds:g}\nuntil then:\n{figures}"
                )
                raise
            shutil.rmtree(folder)
            number += 1
    return figures

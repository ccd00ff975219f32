"""Starts the processes of a round, kills and interrupts them at random, starts them again, and has the rest judged.

A round is a new file: some have format version 1, some the durability `power`. All is drawn from a seed. The system
decides how processes come between each other, so a seed gives the same faults and not the same history.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

from adjoin import FileBusy, Graph
from adjoin.expressions import Set, Value, attribute
from adjoin.requests import CreateTable, Update
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import KeyAttribute, TableDefinition
from tests.stores.test_file import make_version_1
from tests.waiting import LIMIT, until
from tests.whole import clocked, models, older
from tests.whole.journal import Broken, Journal, Operation, Told, replayed
from tests.whole.judge import finish_deletes, judge
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
_PAIRS = """
import datetime, json, pathlib, sys
pair = json.loads(pathlib.Path(sys.argv[1]).read_text())
ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=int(sys.argv[2]))
print(json.dumps({"Version": 1, "AccessKeyId": pair[0], "SecretAccessKey": pair[1], "Expiration": ends.isoformat()}))
"""
"""A program that provides credentials, as AWS's own configuration names one."""


@dataclass
class Figures:
    """What a run did."""

    rounds: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    interrupts: Counter[str] = field(default_factory=Counter)
    jumps: int = 0
    pairs: int = 0
    spoilt: int = 0
    acknowledged: Counter[str] = field(default_factory=Counter)
    unknown: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    """Commands that came to their end, by name and exit status."""
    versions: Counter[str] = field(default_factory=Counter)

    def add(self, told: Told) -> None:
        self.acknowledged.update(told.acknowledged)
        self.unknown += told.unknown
        self.errors.update(told.errors)

    def __str__(self) -> str:
        def listed(counted: Counter[str]) -> str:
            return ", ".join(f"{name} {number}" for name, number in sorted(counted.items()))

        return "\n".join(
            [
                f"{self.rounds} rounds: {listed(self.versions)}",
                f"{self.kills.total()} kills: {listed(self.kills)}",
                f"{self.interrupts.total()} interrupts: {listed(self.interrupts)}",
                f"{self.jumps} jumps of clocks, {self.pairs} key pairs replaced, {self.spoilt} aggregates spoilt",
                f"{self.acknowledged.total()} calls acknowledged: {listed(self.acknowledged)}",
                f"{self.unknown} calls of unknown outcome; errors: {listed(self.errors)}",
                f"commands that ended by themselves: {listed(self.ended)}",
            ]
        )


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
    older: Path | None = None
    """The sources of another adjoin, which it runs. An interrupt within a write is what that could not bear."""
    process: subprocess.Popen[bytes] | BaseProcess | None = None

    def __post_init__(self) -> None:
        self.clock, self.ready, self.said = (self.folder / f"{self.name}.{each}" for each in ("clock", "ready", "said"))
        self.clock.write_text("0")

    def start(self) -> None:
        self.ready.unlink(missing_ok=True)
        program, *arguments = self.command
        environment = self.environment()
        if self.older is None:
            how = (environment, str(self.said), str(self.clock), str(self.ready), program, arguments)
            self.process = _FORKING.Process(target=clocked.forked, args=how)
            self.process.start()
            return
        with self.said.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.whole.clocked", str(self.clock), str(self.ready), program, *arguments],
                cwd=ROOT,
                env=os.environ | environment | {"PYTHONPATH": str(self.older)},
                stdout=said,
                stderr=said,
            )

    def ended(self) -> int | None:
        if isinstance(self.process, subprocess.Popen):
            return self.process.poll()
        return None if self.process is None else self.process.exitcode

    def wait(self, seconds: float = LIMIT) -> int | None:
        """How it ended, if it did in so many seconds."""
        if isinstance(self.process, subprocess.Popen):
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
        elif self.process is not None:
            self.process.join(seconds)
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
            self._command("copy", *self._copying(), ends=(0,)),
            self._command("serve", *self._serving(), jump=SERVER_JUMP),
        ]

    def _command(self, name: str, *arguments: str, ends: tuple[int, ...] = (), jump: int = JUMP) -> Actor:
        return Actor(name, ["adjoin", *arguments], self.folder, self._environment, ends, jump)

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

    def _worker(self, subject: str, name: str, location: str) -> Actor:
        journal = self.journals[name] = self.folder / f"{name}.journal"
        seed = str(self.chance.random())
        arguments = [subject, name, location, str(journal), str(self.stop), seed, str(self.edges)]
        return Actor(name, ["tests.whole.worker", *arguments], self.folder, self._environment)

    def _older(self) -> list[Actor]:
        """A worker of an adjoin that knows version 1 only, where it can be had; it refuses what it does not know."""
        if self.old is None:
            return []
        if self.version == 1:
            actor = self._worker("hubs", "old", self.location)
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
        return []

    # --- meanwhile -----------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        actors = self.set_up()
        try:
            for actor in actors:
                actor.start()
            self._wait_for_all(actors)
            over = time.monotonic() + seconds
            while time.monotonic() < over:
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

    def _wait_for_commands(self, actors: list[Actor]) -> None:
        """Until those that come to an end by themselves did so once, however slow the machine is."""
        wanted = {actor.name for actor in actors if actor.ends}

        def all_have_ended() -> bool:
            self._revive(actors)
            return wanted <= self.finished

        until(all_have_ended, looks_every=0.1)

    def _revive(self, actors: list[Actor]) -> None:
        for actor in actors:
            if actor.ended() is None:
                continue
            status = actor.check(actor.ends)
            self.figures.ended[f"{actor.name} {status}"] += 1
            self.finished.add(actor.name)
            if actor.name == "copy":
                self.copy.unlink()
            actor.start()

    def _disturb(self, actors: list[Actor]) -> None:
        actor = self.chance.choice(actors)
        how = self.chance.random()
        if not actor.ready.exists() and self.chance.random() < _SPARED:
            return
        if how < 0.45:
            actor.kill()
            self.figures.kills[actor.name] += 1
            actor.start()
        elif how < 0.75:
            self._interrupt(actor)
        elif how < 0.8 and self.is_spoilt:
            self._spoil()
        elif how < 0.95:
            actor.clock.write_text(str(self.chance.uniform(-actor.jump, actor.jump)))
            self.figures.jumps += 1
        else:
            (server,) = (actor for actor in actors if actor.name == "serve")
            server.kill()
            self._replace_pair()
            self.figures.pairs += 1
            self.figures.kills["serve"] += 1
            server.start()

    def _interrupt(self, actor: Actor) -> None:
        if not actor.interrupt():
            return
        self.figures.interrupts[actor.name] += 1
        if actor.name in self.journals:
            # A worker goes on.
            return
        status = actor.check((*_AFTER_INTERRUPT, *actor.ends))
        if status == 0 and actor.name == "copy":
            self.copy.unlink()
        actor.start()

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
        for name in ("serve", "maintain 1", "maintain 2", "verify"):
            by_name[name].kill()
        copy = by_name["copy"]
        if copy.ended() is None:
            copy.kill()
        elif copy.check((0,)) == 0:
            self.copy.unlink()
        told = {name: replayed(path) for name, path in self.journals.items()}
        finish_deletes(self.file, told)
        with Graph(self.location, models.MODELS) as g:
            g.maintain(once=True)
            if self.is_spoilt:
                g.verify(repair=True)
                g.maintain(once=True)
        # Whatever it was at, it goes on and includes what was written since.
        copy.clock.write_text("0")
        copy.start()
        copy.check((0,))
        judge(self.file, self.copy, told)
        for each in told.values():
            self.figures.add(each)
        self.figures.rounds += 1


def simulate(seconds: float, seed: int, *, edges: int = 300, round_seconds: float = 12.0) -> Figures:
    """Rounds until the time is over; the one that is under way is brought to its end."""
    figures = Figures()
    over = time.monotonic() + seconds
    number = 0
    with tempfile.TemporaryDirectory() as name:
        old = older.sources(Path(name) / "older")
        while number == 0 or time.monotonic() < over:
            folder = Path(name) / str(number)
            folder.mkdir()
            try:
                Round(folder, seed, number, edges, old, figures).run(round_seconds)
            except BaseException as error:
                kept = Path(tempfile.mkdtemp(prefix="adjoin-whole-"))
                shutil.copytree(folder, kept, dirs_exist_ok=True)
                error.add_note(
                    f"round {number} of `python -m tests.whole --seconds {seconds:g} --seed {seed} --edges {edges}`;"
                    f" its files are in {kept}"
                )
                raise
            shutil.rmtree(folder)
            number += 1
    return figures

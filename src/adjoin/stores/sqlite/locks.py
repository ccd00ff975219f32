"""Locks: turns, which one function of a process has at a time, and the hold that a process has on the file.

**Turns** are locks that an interrupt cannot leave locked for ever. Ctrl-C may end a function between any two of its
instructions: after it took a lock and before the `try` that would release it, or inside the `finally` that is about to
release it. No order of statements prevents that. So a caller that waits for a turn checks, after a moment, whether
anything still has it: a turn belongs to a function that runs in some thread, or was lent to an object that is alive. A
turn that belongs to nothing was left by an interrupted function, and the waiting caller gets it. Without contention, a
turn costs as much as a lock.

**The hold** ensures that nobody removes the file's log (the WAL), and that the file is still the one that was opened.
SQLite uses POSIX locks. They belong to the process, not to a connection, and all of them are dropped when any
descriptor of the file is closed, by Python's own `sqlite3` or by `open(path)`. Another SQLite then believes that it
alone uses the file, and removes the log when it closes: later writes go into a file without a name. So while a store is
open, the process also has two locks of an open file description. Linux drops these only with their descriptor, and
other descriptors of the same process respect them. One keeps others from locking the file exclusively, the other keeps
them from initialising its shared memory again.

Closing the descriptors of the hold would drop the POSIX locks as well. So they stay open as long as anything locks the
file. A system without such locks has no hold, and `docs/file-format.md` says what is forbidden there.

Nothing here executes SQL.
"""

from __future__ import annotations

import atexit
import os
import struct
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any, TypeVar

from adjoin.errors import FileBusy, FileGone

try:
    import fcntl
except ImportError:  # Windows, whose locks belong to descriptors
    fcntl = None  # type: ignore[assignment]

# --- turns -------------------------------------------------------------------------------------


_MOMENT = 0.005
_LONGEST = 0.1
"""Seconds between two looks, the first and the last."""

_HOLDERS: dict[CodeType, tuple[str, ...]] = {}
"""The functions that may have turns, with the kinds of these turns."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def holds(*kinds: str) -> Callable[[_Function], _Function]:
    """Marks a function that takes turns of these kinds, keeps each in a variable, and releases them before it ends."""

    def mark(function: _Function) -> _Function:
        _HOLDERS[function.__code__] = kinds
        return function

    return mark


class Turn:
    """A lock that survives interrupts, see above. `kind` names the functions that may have it, see `holds`."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._lock = threading.Lock()
        self._is_suspected = False
        """Whether the first waiting caller is checking who has it. Meanwhile only that caller may take it."""
        self._fronts: dict[int, threading.Lock] = {}
        """One lock per process, because a fork copies locks. The first waiting caller holds it."""
        self._borrower: Callable[[], object | None] | None = None

    def take(self) -> bool:
        """Waits for the turn; returns whether an interrupted function had left it locked."""
        if not self._is_suspected and self._lock.acquire(blocking=False):
            return False
        return self._wait()

    def try_to_take(self) -> bool:
        """Takes the turn if it is free now; returns whether it did. It never recovers a turn that was left locked."""
        return not self._is_suspected and self._lock.acquire(blocking=False)

    def release(self) -> None:
        self._lock.release()

    def lend(self, borrower: object) -> None:
        """From now on the turn belongs to an object, as long as that is alive, and not to a function."""
        self._borrower = weakref.ref(borrower)

    def give_back(self) -> None:
        self._borrower = None
        self._lock.release()

    # --- waiting -------------------------------------------------------------------------------

    def _wait(self) -> bool:
        is_mine = False
        moment = _MOMENT
        # Python handles no signal between a `with` that takes a lock and its block, nor between the block and its end.
        with self._fronts.setdefault(os.getpid(), threading.Lock()):
            try:
                while not self._lock.acquire(timeout=moment):
                    moment = min(2 * moment, _LONGEST)
                    self._is_suspected = True
                    if not self._is_had():
                        # If it was released since, it is free now; if not, it was left locked. Either way it is mine.
                        was_left = not self._lock.acquire(blocking=False)
                        is_mine = True
                        return was_left
                    self._is_suspected = False
                is_mine = True
                return not is_mine
            finally:
                self._is_suspected = False

    def _is_had(self) -> bool:
        """Whether a running function has the turn, or may be about to take it."""
        if self._borrower is not None and self._borrower() is not None:
            return True
        here = threading.get_ident()
        for thread, frame in sys._current_frames().items():
            if self._is_had_in(frame):
                if thread == here:
                    raise FileBusy(
                        "a call was made inside another call of the same thread, by a signal handler or a finalizer;"
                        " make it after that call has ended"
                    )
                return True
        return False

    def _is_had_in(self, youngest: FrameType) -> bool:
        frame: FrameType | None = youngest
        waits = False
        skipped = 0
        while frame is not None:
            code = frame.f_code
            if code is Turn._wait.__code__ and frame.f_locals.get("self") is self and not frame.f_locals.get("is_mine"):
                # This frame only waits: neither `take`, which called it, nor the caller of `take` has the turn yet.
                waits, skipped = True, 3
            if skipped:
                skipped -= 1
            elif code in _OWN:
                if frame.f_locals.get("self") is self:
                    return True
            elif self._kind in _HOLDERS.get(code, ()):
                turns = [value for value in frame.f_locals.values() if isinstance(value, Turn)]
                # A function without a turn in a variable may be about to take one.
                if any(each is self for each in turns) or not (turns or waits):
                    return True
            frame = frame.f_back
        return False


_OWN = {each.__code__ for each in (Turn.take, Turn.try_to_take, Turn._wait, Turn.give_back)}


# --- the hold on the file ----------------------------------------------------------------------


_HAS_LOCKS = hasattr(fcntl, "F_OFD_SETLK")

# From SQLite's file format: a byte of the range that readers lock, and the byte that every user of the shared memory
# locks.
_SHARED_BYTE = 0x40000002
_LIVING_BYTE = 128
_WRITING_BYTE = 120
_FLOCK = struct.Struct("hhqqi0q")
# From SQLite's WAL format: where the shared memory has the size of a page and the number of valid frames, and the bytes
# before the first frame and before the page of each frame.
_INDEX, _INDEX_AT = struct.Struct("=HI"), 14
_LOG_HEADER, _FRAME_HEADER = 32, 24

Identity = tuple[int, int]


class _File:
    """One file that stores of this process have open, or had."""

    def __init__(self) -> None:
        self.descriptors: list[int] = []
        """Of the file and of its shared memory."""
        self.users: weakref.WeakSet[Hold] = weakref.WeakSet()

    @property
    def is_used(self) -> bool:
        # The length of the set counts those that are just being collected.
        return any(True for _ in self.users)


_files: dict[Identity, _File] = {}
_registry = Turn("registry")
_process = os.getpid()


class Hold:
    """One store's share in the hold on the file at `path`, which a connection of this process has opened."""

    def __init__(self, path: str, pause: float) -> None:
        """`pause` is for how many seconds a writer may rely on what it saw last."""
        self._pause = pause
        self._seen = -pause
        self._path = os.path.abspath(path)
        self._log, self._shared = self._path + "-wal", self._path + "-shm"
        try:
            self._file = _identity(os.lstat(self._path))
            self._log_file, self._shared_file = _identity(os.stat(self._log)), _identity(os.stat(self._shared))
        except OSError:
            # Another store of this process uses the file, and somebody removed a file beside it.
            raise self._gone("has lost its -wal or -shm file") from None
        self._descriptor: int | None = None
        """Of the shared memory, while there is a hold."""
        self._memory: int | None = None
        """The same, until the last connection is closed."""
        if _HAS_LOCKS:
            _alone(self._take)

    def check(self) -> int:
        """The size of the WAL; raises if the file, its WAL or its shared memory is no longer the one that was opened.

        Nobody would find the writes then. Others would make a shared memory of their own, and write over what this
        process has written.
        """
        try:
            # A link in place of the file leads others to the file, but to another WAL.
            file = os.lstat(self._path)
        except OSError:
            raise self._gone("does not exist any more") from None
        if _identity(file) != self._file:
            raise self._gone("is not the one that was opened")
        if not file.st_size:
            raise self._gone("was emptied")
        try:
            log, shared = os.stat(self._log), os.stat(self._shared)
        except OSError:
            raise self._gone("has lost its -wal or -shm file") from None
        if (_identity(log), _identity(shared)) != (self._log_file, self._shared_file):
            raise self._gone("has another -wal or -shm file than the one that is in use")
        return log.st_size

    def check_before_commit(self) -> None:
        """The same for a writer, which must also still have its lock, and all frames of the WAL."""
        now = time.monotonic()
        if now - self._seen < self._pause:
            return
        size = self.check()
        self._seen = now
        if self._descriptor is None:
            return
        if not _is_locked(self._descriptor, _WRITER):
            raise FileBusy(
                f"{self._path}: the locks were lost during a write, because this process opened the file by other"
                " means and closed it; try again"
            )
        if size < _log_size(self._descriptor):
            raise self._gone("has lost the content of its -wal file")

    def is_elsewhere(self) -> bool:
        """Whether the file was moved, removed or replaced. Its WAL stayed: another file in its place would get it."""
        return not _is_there(self._path, self._file, missing=False)

    def has_its_log(self) -> bool:
        """Whether the WAL is whole, and nobody else can have written to it without a lock that counts for both.

        If not, it must not be copied into the file, and not be removed.
        """
        size = 0 if self._memory is None else _log_size(self._memory)
        if not _is_there(self._shared, self._shared_file, missing=True):
            return False
        if not _is_there(self._log, self._log_file, missing=True):
            return False
        with suppress(OSError):
            return os.path.getsize(self._log) >= size
        return True

    def _gone(self, what: str) -> FileGone:
        return FileGone(
            f"the file {self._path} {what}: it was removed, moved or replaced while it was open, and nothing was"
            " written; put it back together with its -wal file, or close the graph and open it again"
        )

    # --- locks ---------------------------------------------------------------------------------

    def _take(self) -> None:
        file = _files.setdefault(self._file, _File())
        try:
            if len(file.descriptors) == 2 and _identity(os.fstat(file.descriptors[1])) != self._shared_file:
                # It is of an earlier time, removed when the last connection was closed.
                os.close(file.descriptors.pop())
            for name in (self._path, self._shared)[len(file.descriptors) :]:
                file.descriptors.append(os.open(name, os.O_RDWR | os.O_CLOEXEC))
            _lock(file, fcntl.F_RDLCK)
        except OSError:
            # A file system may have no such locks.
            return
        file.users.add(self)
        weakref.finalize(self, _unlock, self._file).atexit = False
        self._descriptor = self._memory = file.descriptors[1]

    def let_go(self) -> None:
        """Before the last connection is closed, which may then remove the log. It can be done again."""
        if _HAS_LOCKS:
            _alone(self._let_go)

    def _let_go(self) -> None:
        self._descriptor = None
        file = _files.get(self._file)
        if file is not None:
            file.users.discard(self)
            if not file.is_used:
                _lock(file, fcntl.F_UNLCK)


@holds("registry")
def _alone(work: Callable[[], None]) -> None:
    """Does something with the files of this process, while nobody else does."""
    registry = _registry
    registry.take()
    try:
        _forget_other_processes()
        work()
    finally:
        registry.release()


@holds("registry")
def _unlock(identity: Identity) -> None:
    """Runs when a store is collected that was not closed: closing its connection may remove the log."""
    registry = _registry
    # It may be found as garbage anywhere; what does not fit in here is left to `close_unused`.
    if not registry.try_to_take():
        return
    try:
        _forget_other_processes()
        file = _files.get(identity)
        if file is not None and not file.is_used:
            _lock(file, fcntl.F_UNLCK)
    finally:
        registry.release()


@atexit.register
def _unlock_all() -> None:
    """Runs at the end of the process, for stores that were not closed."""
    _forget_other_processes()
    for file in _files.values():
        _lock(file, fcntl.F_UNLCK)


def close_unused() -> None:
    """Close descriptors of files that nobody locks, so that no lock falls with them."""
    if _files:
        _alone(_close_unused)


def _close_unused() -> None:
    for identity, file in list(_files.items()):
        if file.is_used:
            continue
        # It may belong to a store that nobody closed.
        _lock(file, fcntl.F_UNLCK)
        if not any(_is_locked(each, _ANYBODY) for each in file.descriptors):
            del _files[identity]
            _close(file)


def _forget_other_processes() -> None:
    """After a fork: the parent's locks are the parent's, and go on when its descriptors are closed here."""
    global _process
    if _process != os.getpid():
        _process = os.getpid()
        while _files:
            _close(_files.popitem()[1])


def _close(file: _File) -> None:
    while file.descriptors:
        os.close(file.descriptors.pop())


def _lock(file: _File, kind: int) -> None:
    for descriptor, byte in zip(file.descriptors, (_SHARED_BYTE, _LIVING_BYTE), strict=False):
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, byte, 1, 0))


_WRITER = _FLOCK.pack(1, os.SEEK_SET, _WRITING_BYTE, 1, 0)
_ANYBODY = _FLOCK.pack(1, os.SEEK_SET, 0, 0, 0)
_UNLOCKED = struct.pack("h", 2)
"""Questions for a lock to write, which is in the way of any other: 1 is Linux's F_WRLCK, 2 its F_UNLCK."""


def _is_locked(descriptor: int, question: bytes) -> bool:
    """Whether anybody else has a lock there; the connections of this process are others."""
    answer: bytes = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, question)
    return answer[:2] != _UNLOCKED


def _log_size(descriptor: int) -> int:
    """How many bytes the WAL has at least, by its index in the shared memory. Only its writer may rely on that."""
    page, frames = _INDEX.unpack(os.pread(descriptor, _INDEX.size, _INDEX_AT))
    # A page of 65,536 bytes is written as 1.
    return _LOG_HEADER + frames * (_FRAME_HEADER + (page & 0xFE00 | (page & 1) << 16)) if frames else 0


def _is_there(path: str, identity: Identity, *, missing: bool) -> bool:
    """Whether the file at a path is this one; `missing` is the answer if there is none."""
    try:
        return _identity(os.lstat(path)) == identity
    except OSError:
        return missing


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino

"""A process's hold on the file: that nobody takes its log away, and that it still is the file that was opened.

SQLite's locks are those of POSIX. They belong to the process, not to a connection, and all of them fall when any
descriptor of the file is closed, by Python's own `sqlite3` or by `open(path)`. Then another SQLite takes itself for the
only one that uses the file, and removes the log when it closes: what is written afterwards goes into a file without a
name. So as long as a store is open, the process also has two locks of its open file description, which Linux drops with
their descriptor only, and which other descriptors of the same process respect: one that keeps everybody from locking
the file for themselves, one that keeps everybody from beginning its shared memory anew.

To close the descriptors of the hold drops the locks of POSIX as well. So they stay open as long as anybody locks the
file. Where a system has no such locks, nothing is held, and `docs/file-format.md` says what is forbidden there.
"""

from __future__ import annotations

import atexit
import os
import struct
import time
import weakref
from collections.abc import Callable

from adjoin.errors import FileBusy, FileGone
from adjoin.stores.sqlite.turns import Turn, holds

try:
    import fcntl
except ImportError:  # Windows, whose locks belong to descriptors
    fcntl = None  # type: ignore[assignment]

_HAS_LOCKS = hasattr(fcntl, "F_OFD_SETLK")

# Of SQLite's file format: a byte of the range that readers share, and that of who lives with the shared memory.
_SHARED_BYTE = 0x40000002
_LIVING_BYTE = 128
_WRITING_BYTE = 120
_FLOCK = struct.Struct("hhqqi0q")

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
        self._log = self._path + "-wal"
        self._file = _identity(self._path)
        self._log_file = _identity(self._log)
        self._descriptor: int | None = None
        """Of the shared memory."""
        if _HAS_LOCKS:
            _alone(self._take)

    def check(self) -> None:
        """Refuse to go on with a file that nobody will find."""
        try:
            file, log = os.stat(self._path), os.stat(self._log)
        except OSError:
            raise self._gone("is not there any more") from None
        if (file.st_dev, file.st_ino) != self._file:
            raise self._gone("is not the one that was opened")
        if not file.st_size:
            raise self._gone("was emptied")
        if (log.st_dev, log.st_ino) != self._log_file:
            raise self._gone("has another -wal file than the one that is written to")

    def check_before_commit(self) -> None:
        """The same for a writer, who also needs the lock that it took."""
        now = time.monotonic()
        if now - self._seen < self._pause:
            return
        self.check()
        self._seen = now
        if self._descriptor is not None and not _is_locked(self._descriptor, _WRITER):
            raise FileBusy(
                f"{self._path}: the locks were lost during a write, because this process opened the file by other"
                " means and closed it; try again"
            )

    def _gone(self, what: str) -> FileGone:
        return FileGone(
            f"the file {self._path} {what}: it was removed, moved or replaced while it was open, and nothing was"
            " written; put it back together with its -wal file, or close the graph and open it again"
        )

    # --- locks ---------------------------------------------------------------------------------

    def _take(self) -> None:
        file = _files.setdefault(self._file, _File())
        shared = self._path + "-shm"
        try:
            if len(file.descriptors) == 2 and not os.path.samestat(os.fstat(file.descriptors[1]), os.stat(shared)):
                # It is of an earlier time, removed when the last connection was closed.
                os.close(file.descriptors.pop())
            for name in (self._path, shared)[len(file.descriptors) :]:
                file.descriptors.append(os.open(name, os.O_RDWR | os.O_CLOEXEC))
            _lock(file, fcntl.F_RDLCK)
        except OSError:
            # A file system may have no such locks.
            return
        file.users.add(self)
        weakref.finalize(self, _unlock, self._file).atexit = False
        self._descriptor = file.descriptors[1]

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
    """After a store that nobody closed: its connection is about to be closed, and may remove the log."""
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
    """At the end of the process, when stores are closed that nobody closed."""
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


def _identity(path: str) -> Identity:
    found = os.stat(path)
    return found.st_dev, found.st_ino

"""Tables in which it takes a second look to tell the classes apart, filled as a program with boto3 would write them.

- a feed: labels in lower case, some of which have items with the same attributes
- documents: the latest version beside the numbered ones
- files: a key whose attribute has a name, and values that all begin alike
- a school: items under items of the same partition
"""

from __future__ import annotations

from collections.abc import Callable

from tests.inferring.published import Table, item, table


def feed() -> Table:
    items = []
    for user in range(15):
        items.append(item(pk=f"u#{user}", sk="profile", handle=f"@h{user}", followers=3))
        for step in range(3):
            other, since = (user + step * 4 + 1) % 15, f"2024-01-0{step + 1}T10:00:00Z"
            items.append(item(pk=f"u#{user}", sk=f"following#{other}", since=since))
            items.append(item(pk=f"u#{other}", sk=f"follower#{user}", since=since))
        for number in range(4):
            post = f"01HK{user:02}{number}ABC"
            items.append(item(pk=f"u#{user}", sk=f"post#{post}", text=f"hi {number}", likes=number))
            items += [item(pk=f"post#{post}", sk=f"like#{user + at + 1}", at=1700000000 + at) for at in range(number)]
    return table("feed", "pk sk"), items


def documents() -> Table:
    items = []
    for number in range(30):
        key = f"doc#d-{number:03}x"
        items.append(item(pk=key, sk="v#latest", version=number % 4, title=f"Doc {number}"))
        items += [
            item(pk=key, sk=f"v#{version:06}", content=f"c{version}", editor=f"user#{number % 5}")
            for version in range(1, number % 4 + 2)
        ]
    return table("documents", "pk sk"), items


def files() -> Table:
    return table("files", "drive path", byEtag="etag"), [
        item(drive=f"d-{drive}", path=f"/docs/f{at}.txt", size=at * 10, etag=f"{drive:08x}{at:08x}")
        for drive in range(6)
        for at in range(20)
    ]


def school() -> Table:
    items = [item(PK=f"STUDENT#{at:05}", SK="PROFILE", name=f"Name {at}") for at in range(4)]
    for term in ("2023-1", "2023-2", "2024-1"):
        for course in ("MATH101", "BIO102", "ART7"):
            items.append(item(PK=f"TERM#{term}", SK=f"COURSE#{course}", title=course.title(), seats=30))
            items += [
                item(
                    PK=f"TERM#{term}",
                    SK=f"COURSE#{course}#STUDENT#{at:05}",
                    grade="AB"[at % 2],
                    GSI1PK=f"STUDENT#{at:05}",
                    GSI1SK=f"TERM#{term}#COURSE#{course}",
                )
                for at in range(4)
            ]
    return table("School", "PK SK", GSI1="GSI1PK GSI1SK"), items


TOLD_APART: dict[str, Callable[[], Table]] = {each.__name__: each for each in (feed, documents, files, school)}

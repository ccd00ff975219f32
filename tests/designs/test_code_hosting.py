"""A code-hosting service in one table, as books on DynamoDB draw it: accounts, repositories, issues, pull requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import pytest
from pydantic import Field, model_validator
from pydantic.alias_generators import to_pascal

from adjoin import AdjacencyList, Child, Edge, Graph, Index, Keys, Node, field
from adjoin.values import Item
from tests.designs.table_of_others import STORES, asked, filled, item, stored
from tests.servers.open import Stores


class Account(Node, key="name", alias_generator=to_pascal):
    name: str
    kind: str = Field(alias="Type")
    plan: str | None = None


class Repo(Node, key=("owner", "name"), alias_generator=to_pascal):
    owner: str
    name: str
    kind: str = Field("Repo", alias="Type")
    updated_at: str
    original: str = Field(alias="GSI2PK")
    fork: str = Field(alias="GSI2SK")
    star_count: int = 0
    fork_count: int = 0


def by_status(what: str, status: str, number: int) -> str:
    """Open ones come first, the newest of them first. No template says so, so the classes derive this key."""
    return f"#{what}#OPEN#{9_999_999 - number:07}" if status == "Open" else f"{what}#CLOSED#{number:07}"


class Issue(Child[Repo], key="number", alias_generator=to_pascal):
    number: int
    kind: str = Field("Issue", alias="Type")
    title: str
    status: str = "Open"
    creator: str
    by_status: str = Field("", alias="GSI4SK")

    @model_validator(mode="after")
    def _keep_key(self) -> Self:
        self.__dict__["by_status"] = by_status("ISSUE", self.status, self.number)
        return self


class PullRequest(Node, key=("owner", "repo", "number"), alias_generator=to_pascal):
    owner: str
    repo: str
    number: int
    kind: str = Field("PullRequest", alias="Type")
    title: str
    status: str = "Open"
    by_status: str = Field("", alias="GSI4SK")

    @model_validator(mode="after")
    def _keep_key(self) -> Self:
        self.__dict__["by_status"] = by_status("PR", self.status, self.number)
        return self


class Comment(Node, key=("owner", "repo", "issue", "id"), alias_generator=to_pascal):
    owner: str
    repo: str
    issue: int
    id: str
    kind: str = Field("IssueComment", alias="Type")
    content: str


class Reaction(Node, key=("target", "owner", "repo", "number", "user"), alias_generator=to_pascal):
    target: str
    owner: str
    repo: str
    number: str
    user: str
    kind: str = Field("Reaction", alias="Type")
    reactions: set[str] = set()


class Star(Edge[Repo, Account], alias_generator=to_pascal):
    kind: str = Field("Star", alias="Type")
    starred_at: str


class Member(Edge[Account, Account], alias_generator=to_pascal):
    kind: str = Field("Membership", alias="Type")
    role: str = "Member"


class Gist(Child[Account], alias_generator=to_pascal):
    id: str
    kind: str = Field("Gist", alias="Type")
    title: str


MODELS: list[Any] = [Account, Repo, Issue, PullRequest, Comment, Reaction, Star, Member, Gist]
REPO = "REPO#{owner}#{name}"
LAYOUT = AdjacencyList(
    table="GitHub",
    reverse=None,
    indexes=[
        Index("GSI1", "GSI1PK", "GSI1SK"),
        Index("GSI2", "GSI2PK", "GSI2SK"),
        Index("GSI3", "GSI3PK", "GSI3SK"),
        Index("GSI4", "GSI4PK", "GSI4SK"),
    ],
    keys={
        Account: Keys(
            "ACCOUNT#{name}",
            "ACCOUNT#{name}",
            indexes={"GSI3": ("ACCOUNT#{name}", "ACCOUNT#{name}")},
            attributes={"AccountName": "{name}"},
        ),
        Repo: Keys(
            REPO,
            REPO,
            indexes={"GSI1": (REPO, REPO), "GSI3": ("ACCOUNT#{owner}", "#{updated_at}"), "GSI4": (REPO, REPO)},
            attributes={"RepoOwner": "{owner}", "RepoName": "{name}"},
        ),
        Issue: Keys(
            sort="ISSUE#{number:07}",
            indexes={"GSI4": "REPO#{parent.owner}#{parent.name}"},
            attributes={"RepoOwner": "{parent.owner}", "RepoName": "{parent.name}", "IssueNumber": "{number}"},
        ),
        PullRequest: Keys(
            "PR#{owner}#{repo}#{number:07}",
            "PR#{owner}#{repo}#{number:07}",
            indexes={"GSI1": ("REPO#{owner}#{repo}", "PR#{number:07}"), "GSI4": "REPO#{owner}#{repo}"},
            attributes={"RepoOwner": "{owner}", "RepoName": "{repo}", "PullRequestNumber": "{number}"},
        ),
        Comment: Keys("ISSUECOMMENT#{owner}#{repo}#{issue:07}", "ISSUECOMMENT#{id}"),
        Reaction: Keys(
            "{target}REACTION#{owner}#{repo}#{number}#{user}", "{target}REACTION#{owner}#{repo}#{number}#{user}"
        ),
        Star: Keys(sort="STAR#{target.name}", attributes={"UserName": "{target.name}"}),
        Member: Keys(sort="MEMBERSHIP#{target.name}"),
        Gist: Keys(sort="#GIST#{id}"),
    },
)


def at(day: int) -> str:
    return f"2024-05-{day:02}T10:00:00Z"


def account(name: str, kind: str, **more: Any) -> Item:
    key = f"ACCOUNT#{name}"
    return item(PK=key, SK=key, GSI3PK=key, GSI3SK=key, Type=kind, AccountName=name, **more)


def repo(owner: str, name: str, day: int, root: str | None = None, stars: int = 0, forks: int = 0) -> Item:
    key = f"REPO#{owner}#{name}"
    return item(
        PK=key,
        SK=key,
        GSI1PK=key,
        GSI1SK=key,
        GSI2PK=f"REPO#{root or owner}#{name}",
        GSI2SK=key if root is None else f"FORK#{owner}",
        GSI3PK=f"ACCOUNT#{owner}",
        GSI3SK=f"#{at(day)}",
        GSI4PK=key,
        GSI4SK=key,
        Type="Repo",
        RepoOwner=owner,
        RepoName=name,
        UpdatedAt=at(day),
        StarCount=stars,
        ForkCount=forks,
    )


def issue(number: int, status: str, title: str) -> Item:
    key = "REPO#acme#rocket"
    return item(
        PK=key,
        SK=f"ISSUE#{number:07}",
        GSI4PK=key,
        GSI4SK=f"#ISSUE#OPEN#{9999999 - number:07}" if status == "Open" else f"ISSUE#CLOSED#{number:07}",
        Type="Issue",
        RepoOwner="acme",
        RepoName="rocket",
        IssueNumber=number,
        Title=title,
        Status=status,
        Creator="ann",
    )


def pull_request(number: int, status: str, title: str) -> Item:
    key, own = "REPO#acme#rocket", f"PR#acme#rocket#{number:07}"
    return item(
        PK=own,
        SK=own,
        GSI1PK=key,
        GSI1SK=f"PR#{number:07}",
        GSI4PK=key,
        GSI4SK=f"#PR#OPEN#{9999999 - number:07}" if status == "Open" else f"PR#CLOSED#{number:07}",
        Type="PullRequest",
        RepoOwner="acme",
        RepoName="rocket",
        PullRequestNumber=number,
        Title=title,
        Status=status,
    )


ROCKET = "REPO#acme#rocket"
ITEMS = [
    account("ann", "User", Plan="Pro"),
    account("bob", "User"),
    account("acme", "Organization", Plan="Team"),
    repo("acme", "rocket", 3, stars=2, forks=2),
    repo("acme", "wheel", 9),
    repo("ann", "rocket", 5, root="acme"),
    repo("bob", "rocket", 1, root="acme"),
    repo("ann", "dotfiles", 2),
    issue(1, "Closed", "It explodes"),
    issue(2, "Open", "It is loud"),
    issue(10, "Open", "It is late"),
    issue(11, "Closed", "It is red"),
    pull_request(3, "Open", "Make it quiet"),
    pull_request(4, "Closed", "Paint it"),
    item(PK="ISSUECOMMENT#acme#rocket#0000002", SK="ISSUECOMMENT#0a", Type="IssueComment", Content="Very loud"),
    item(PK="ISSUECOMMENT#acme#rocket#0000002", SK="ISSUECOMMENT#0b", Type="IssueComment", Content="Agreed"),
    item(PK="ISSUECOMMENT#acme#rocket#0000020", SK="ISSUECOMMENT#0c", Type="IssueComment", Content="Elsewhere"),
    *(
        item(PK=key, SK=key, Type="Reaction", Reactions={"+1", "eyes"})
        for key in ["ISSUEREACTION#acme#rocket#0000002#bob"]
    ),
    item(PK=ROCKET, SK="STAR#ann", Type="Star", UserName="ann", StarredAt=at(4)),
    item(PK=ROCKET, SK="STAR#bob", Type="Star", UserName="bob", StarredAt=at(6)),
    item(PK="ACCOUNT#acme", SK="MEMBERSHIP#ann", Type="Membership", Role="Owner"),
    item(PK="ACCOUNT#acme", SK="MEMBERSHIP#bob", Type="Membership", Role="Member"),
    item(PK="ACCOUNT#ann", SK="#GIST#1aa", Type="Gist", Title="first"),
    item(PK="ACCOUNT#ann", SK="#GIST#1ab", Type="Gist", Title="second"),
]
STRAY = item(PK=ROCKET, SK="WIKI#home", GSI1PK=ROCKET, GSI1SK="WIKI#home", Text="hello")


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, LAYOUT, [*ITEMS, STRAY]) as graph:
        yield graph


def test_accounts(g: Graph) -> None:
    ann = Account(name="ann", kind="User", plan="Pro")
    assert asked(g, g.get, Account, "ann") == (ann, 1)
    # An account and its repositories, the newest first: one query.
    around, requests = asked(g, g.index("GSI3").partition("ACCOUNT#ann").reverse())
    assert requests == 1
    assert [getattr(each, "name", None) for each in around] == ["ann", "rocket", "dotfiles"]
    assert around[0] == ann
    repos, requests = asked(g, g.find(Repo, field("owner") == "ann", order="updated_at").reverse())
    assert ([each.name for each in repos], requests) == (["rocket", "dotfiles"], 1)
    recent = (field("owner") == "acme") & (field("updated_at") >= at(4))
    assert [each.name for each in g.find(Repo, recent)] == ["wheel"]
    members, requests = asked(g, g.out("acme", Member))
    assert ([(each.target, each.role) for each in members], requests) == ([("ann", "Owner"), ("bob", "Member")], 1)
    gists, requests = asked(g, g.children("ann", Gist).reverse())
    assert ([each.title for each in gists], requests) == (["second", "first"], 1)
    everything, requests = asked(g, g.collection(Account.ref("acme")))
    assert (everything.node.plan, len(everything.edges), requests) == ("Team", 2, 1)


def test_repositories(g: Graph) -> None:
    found, requests = asked(g, g.get, Repo, ("acme", "rocket"))
    assert ((found.star_count, found.fork_count), requests) == ((2, 2), 1)
    stars, requests = asked(g, g.out(("acme", "rocket"), Star))
    assert ([each.target for each in stars], requests) == (["ann", "bob"], 1)
    issues, requests = asked(g, g.children(("acme", "rocket"), Issue).reverse().limit(2))
    assert ([each.number for each in issues], requests) == ([11, 10], 1)
    assert asked(g, g.get, Issue, ("acme", "rocket", 10))[0].title == "It is late"
    # Forks: the index begins with them, because FORK# sorts before REPO#.
    forks, requests = asked(g, g.index("GSI2").partition(ROCKET).begins_with("FORK#"))
    assert ([each.owner for each in forks], requests) == (["ann", "bob"], 1)
    forks, requests = asked(g, g.find(Repo, (field("original") == ROCKET) & field("fork").begins_with("FORK#")))
    assert ([each.owner for each in forks], requests) == (["ann", "bob"], 1)
    around, requests = asked(g, g.collection(Repo.ref(("acme", "rocket"))))
    assert requests == 1
    assert (around.node.name, [each.number for each in around.children]) == ("rocket", [1, 2, 10, 11])
    assert [each.target for each in around.edges] == ["ann", "bob"]
    assert around.others == [
        {"PK": ROCKET, "SK": "WIKI#home", "GSI1PK": ROCKET, "GSI1SK": "WIKI#home", "Text": "hello"}
    ]


def test_issues_and_pull_requests(g: Graph) -> None:
    own = (field("owner") == "acme") & (field("repo") == "rocket")
    found, requests = asked(g, g.find(PullRequest, own))
    assert ([each.number for each in found], requests) == ([3, 4], 1)
    found, requests = asked(g, g.find(PullRequest, own & (field("number") > 3)))
    assert ([each.number for each in found], requests) == ([4], 1)
    # A repository with its newest pull requests.
    found, requests = asked(g, g.index("GSI1").partition(ROCKET).reverse())
    assert ([type(each) for each in found], requests) == ([Repo, PullRequest, PullRequest], 1)
    assert g.index("GSI1").partition(ROCKET).others.count() == 1
    # By status: the newest open one first, the newest closed one last.
    for model, name, opened, closed in ((Issue, "ISSUE", [10, 2], [1, 11]), (PullRequest, "PR", [3], [4])):
        where = own if model is PullRequest else field("parent") == ("acme", "rocket")
        for prefix, numbers in ((f"#{name}#OPEN#", opened), (f"{name}#CLOSED#", closed)):
            found, requests = asked(g, g.index("GSI4").partition(ROCKET).begins_with(prefix))
            assert ([each.number for each in found], requests) == (numbers, 1)
            found, requests = asked(g, g.find(model, where & field("by_status").begins_with(prefix)))
            assert ([each.number for each in found], requests) == (numbers, 1)
    comments, requests = asked(g, g.find(Comment, own & (field("issue") == 2)))
    assert ([each.content for each in comments], requests) == (["Very loud", "Agreed"], 1)
    reaction, requests = asked(g, g.get, Reaction, ("ISSUE", "acme", "rocket", "0000002", "bob"))
    assert (reaction.reactions, requests) == ({"+1", "eyes"}, 1)


def test_everything_is_explained_or_kept(g: Graph) -> None:
    contents = g.scan().collect()
    assert len(contents.nodes) + len(contents.edges) == len(ITEMS)
    assert contents.others == [
        {"PK": ROCKET, "SK": "WIKI#home", "GSI1PK": ROCKET, "GSI1SK": "WIKI#home", "Text": "hello"}
    ]


def test_repositories_are_written(g: Graph) -> None:
    g.put(Repo(owner="cy", name="rocket", updated_at=at(3), original=ROCKET, fork="FORK#cy"))
    assert stored(g, "REPO#cy#rocket", "REPO#cy#rocket") == repo("cy", "rocket", 3, root="acme")
    assert [each.owner for each in g.index("GSI2").partition(ROCKET).begins_with("FORK#")] == ["ann", "bob", "cy"]
    g.update(Repo, ("acme", "rocket"), fork_count=field("fork_count") + 1, updated_at=at(20))
    assert stored(g, ROCKET, ROCKET) == repo("acme", "rocket", 20, stars=2, forks=3)
    assert [each.name for each in g.find(Repo, field("owner") == "acme", order="updated_at")] == ["wheel", "rocket"]
    with g.transaction() as t:
        t.connect(Star, ("acme", "wheel"), "bob", starred_at=at(8))
        t.update(Repo, ("acme", "wheel"), star_count=field("star_count") + 1)
    starred = item(PK="REPO#acme#wheel", SK="STAR#bob", Type="Star", UserName="bob", StarredAt=at(8))
    assert stored(g, "REPO#acme#wheel", "STAR#bob") == starred
    assert stored(g, "REPO#acme#wheel", "REPO#acme#wheel") == repo("acme", "wheel", 9, stars=1)
    assert g.disconnect(Star, ("acme", "wheel"), "bob")
    assert stored(g, "REPO#acme#wheel", "STAR#bob") is None
    g.put(Gist(parent="bob", id="1b", title="mine"))
    assert stored(g, "ACCOUNT#bob", "#GIST#1b") == item(PK="ACCOUNT#bob", SK="#GIST#1b", Type="Gist", Title="mine")


def test_issues_are_written(g: Graph) -> None:
    where = ("acme", "rocket")
    g.add(Issue(parent=where, number=12, title="It is new", creator="ann"))
    assert stored(g, ROCKET, "ISSUE#0000012") == issue(12, "Open", "It is new")
    g.update(Issue, (*where, 12), status="Closed")
    assert stored(g, ROCKET, "ISSUE#0000012") == issue(12, "Closed", "It is new")
    assert g.find(Issue, (field("parent") == where) & field("by_status").begins_with("ISSUE#CLOSED#")).count() == 3
    g.put(PullRequest(owner="acme", repo="rocket", number=13, title="Fix"))
    assert stored(g, "PR#acme#rocket#0000013", "PR#acme#rocket#0000013") == pull_request(13, "Open", "Fix")
    g.put(Comment(owner="acme", repo="rocket", issue=12, id="0d", content="Done"))
    comment = item(PK="ISSUECOMMENT#acme#rocket#0000012", SK="ISSUECOMMENT#0d", Type="IssueComment", Content="Done")
    assert stored(g, "ISSUECOMMENT#acme#rocket#0000012", "ISSUECOMMENT#0d") == comment
    key = "ISSUEREACTION#acme#rocket#0000012#ann"
    g.put(Reaction(target="ISSUE", owner="acme", repo="rocket", number="0000012", user="ann", reactions={"+1"}))
    assert stored(g, key, key) == item(PK=key, SK=key, Type="Reaction", Reactions={"+1"})


def test_a_repository_is_deleted_with_its_issues(g: Graph) -> None:
    assert g.delete(Repo, ("acme", "rocket"))
    assert g.children(("acme", "rocket"), Issue).count() == g.out(("acme", "rocket"), Star).count() == 0
    assert stored(g, ROCKET, "WIKI#home") == STRAY
    assert g.find(PullRequest, (field("owner") == "acme") & (field("repo") == "rocket")).count() == 2
    assert g.get(Repo, ("acme", "wheel")) is not None
    assert g.scan().count() == len(ITEMS) - 1 - 4 - 2

"""Policies: what they allow and what they do not, evaluated as IAM evaluates them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adjoin import AdjacencyList, Node, aws, requests
from adjoin.errors import InvalidKey, InvalidValue
from adjoin.reserved import tenant_prefix
from adjoin.tables import KeyAttribute, TableDefinition
from tests.aws.evaluation import allows
from tests.aws.linting import faults
from tests.aws.renderings import EVERY, TABLES

EDUCATION = TABLES["education"]
EXPIRING = replace(EDUCATION, ttl="until", tags=(("team", "graph"),))
TABLE = "arn:aws:dynamodb:eu-west-1:123456789012:table/Education"
INDEX = f"{TABLE}/index/GSI1"
STREAM = f"{TABLE}/stream/2026-11-15T00:00:00.000"
READS = ("GetItem", "BatchGetItem", "Query")
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "ConditionCheckItem")

# The actions behind every request that a store is asked, and the access that must allow them.
ACTIONS: dict[type, tuple[aws.Access, tuple[tuple[str, str], ...]]] = {
    requests.Get: ("read", (("GetItem", TABLE),)),
    requests.BatchGet: ("read", (("BatchGetItem", TABLE),)),
    requests.TransactGet: ("read", (("GetItem", TABLE),)),
    requests.Query: ("read", (("Query", TABLE), ("Query", INDEX))),
    requests.Scan: ("scan", (("Scan", TABLE), ("Scan", INDEX))),
    requests.Put: ("write", (("PutItem", TABLE),)),
    requests.Update: ("write", (("UpdateItem", TABLE),)),
    requests.Delete: ("write", (("DeleteItem", TABLE),)),
    requests.BatchWrite: ("write", (("BatchWriteItem", TABLE),)),
    requests.TransactWrite: ("write", tuple((name, TABLE) for name in WRITES if name != "BatchWriteItem")),
    requests.CreateTable: ("manage", (("CreateTable", TABLE),)),
    requests.SetTimeToLive: ("manage", (("UpdateTimeToLive", TABLE), ("DescribeTable", TABLE))),
    requests.UpdateTable: ("manage", (("UpdateTable", TABLE), ("DescribeTable", TABLE))),
    requests.TagTable: ("manage", (("TagResource", TABLE), ("UntagResource", TABLE), ("DescribeTable", TABLE))),
    requests.ListTags: ("manage", (("ListTagsOfResource", TABLE), ("DescribeTable", TABLE))),
    requests.ListStreams: ("stream", (("ListStreams", "*"),)),
    requests.DropTable: ("manage", (("DeleteTable", TABLE), ("DescribeTable", TABLE))),
    requests.DescribeTable: ("read", (("DescribeTable", TABLE), ("DescribeTimeToLive", TABLE))),
    requests.ListTables: ("list", (("ListTables", "*"),)),
    requests.ReadChanges: (
        "stream",
        tuple((name, STREAM) for name in ("DescribeStream", "GetShardIterator", "GetRecords")),
    ),
}


@pytest.mark.parametrize("request_type", get_args(requests.Request))
def test_every_request_is_allowed_by_its_access_and_by_no_other(request_type: type) -> None:
    access, calls = ACTIONS[request_type]
    for action, resource in calls:
        assert allows(aws.iam_policy(EXPIRING, access=access), action, resource)
        assert allows(aws.iam_policy(EXPIRING, access="full"), action, resource)
        other = resource.replace("Education", "Educations")
        assert other == "*" or not allows(aws.iam_policy(EXPIRING, access="full"), action, other)
        others = [each for each in get_args(aws.Access) if each not in (access, "full")]
        is_open = action.startswith("Describe") and resource == TABLE
        assert allows(aws.iam_policy(EXPIRING, access=others), action, resource) == is_open


def test_accesses_add_up() -> None:
    policy = aws.iam_policy(EDUCATION, access=("write", "read"))
    assert policy == aws.iam_policy(EDUCATION, access=["read", "write"])
    assert [each["Sid"] for each in policy["Statement"]] == ["Describe", "Read", "Write"]


def test_place() -> None:
    policy = aws.iam_policy(EDUCATION, region="eu-west-1", account="123456789012", partition="aws-cn")
    assert policy["Statement"][1]["Resource"] == [
        "arn:aws-cn:dynamodb:eu-west-1:123456789012:table/Education",
        "arn:aws-cn:dynamodb:eu-west-1:123456789012:table/Education/index/*",
    ]


def test_managing_is_what_the_table_needs() -> None:
    def managing(table: TableDefinition) -> set[str]:
        (actions,) = (
            each["Action"] for each in aws.iam_policy(table, access="manage")["Statement"] if each["Sid"] == "Manage"
        )
        return {each.removeprefix("dynamodb:") for each in actions}

    more = {"UpdateTimeToLive", "UpdateContinuousBackups", "TagResource", "UntagResource"}
    assert managing(EVERY) - managing(EDUCATION) == more
    assert not more & managing(EDUCATION)


# --- single partitions -------------------------------------------------------------------------


def confined(**options: Any) -> dict[str, Any]:
    return aws.iam_policy(EDUCATION, access=("read", "write"), **options)


def reach(policy: dict[str, Any], *keys: str, **variables: str) -> bool:
    """Whether a policy lets these keys be read and written; it must be the same for every action."""
    calls = [(action, TABLE) for action in (*READS, *WRITES)] + [("Query", INDEX)]
    outcomes = {allows(policy, action, resource, keys, variables) for action, resource in calls}
    (outcome,) = outcomes
    return outcome


def test_only_the_leading_keys_are_reached() -> None:
    policy = confined(leading_keys=["STUDENT#S1", "STUDENT#S2"])
    assert reach(policy, "STUDENT#S1")
    assert reach(policy, "STUDENT#S1", "STUDENT#S2")
    assert not reach(policy, "STUDENT#S3")
    assert not reach(policy, "STUDENT#S1", "STUDENT#S3"), "one foreign key among many"
    assert not reach(policy, "STUDENT#S1#more")
    assert allows(policy, "DescribeTable", TABLE), "a graph asks this when it opens, without any key"


def test_what_is_recorded_about_the_table_is_read_by_everybody_and_written_by_nobody() -> None:
    for policy in (confined(leading_keys=["STUDENT#S1"]), confined(tenant="acme")):
        assert allows(policy, "GetItem", TABLE, ["#=RECORDS"])
        assert allows(policy, "Query", TABLE, ["#=RECORDS"])
        assert not allows(policy, "Query", TABLE, ["#=SHARDS"])
        assert not any(allows(policy, action, TABLE, ["#=RECORDS"]) for action in WRITES)
    only_write = aws.iam_policy(EDUCATION, access="write", tenant="acme")
    assert allows(only_write, "Query", TABLE, ["#=RECORDS"]), "a graph asks this when it opens"
    assert not allows(only_write, "Query", TABLE, ["acme#STUDENT#S1"])


def test_a_request_without_keys_reaches_nothing() -> None:
    for policy in (confined(leading_keys=["STUDENT#S1"]), confined(tenant="acme")):
        assert not reach(policy)
        for action in ("Scan", "GetRecords", "DeleteTable", "PartiQLSelect"):
            assert not allows(policy, action, TABLE)


def test_patterns_and_variables() -> None:
    policy = confined(leading_keys=["COURSE#*"], leading_patterns=["STUDENT#${aws:PrincipalTag/student}", "OPEN#?"])
    who = {"aws:PrincipalTag/student": "S1"}
    assert reach(policy, "STUDENT#S1", **who)
    assert reach(policy, "OPEN#1", "COURSE#*", **who)
    assert not reach(policy, "STUDENT#S2", **who)
    assert not reach(policy, "OPEN#12", **who)
    assert not reach(policy, "COURSE#C1", **who), "a key is no pattern, even among patterns"


def test_a_tenant_reaches_its_own_keys() -> None:
    policy = confined(tenant="acme")
    assert reach(policy, "acme#STUDENT#S1", "acme#COURSE#C1")
    assert not reach(policy, "acme#STUDENT#S1", "acme2#STUDENT#S1")
    assert not reach(policy, "STUDENT#S1")
    assert not reach(policy, "acme")


def test_keys_and_patterns_are_relative_to_a_tenant() -> None:
    policy = confined(tenant="a*", leading_keys=["STUDENT#S1"], leading_patterns=["COURSE#*"])
    assert reach(policy, "a*#STUDENT#S1", "a*#COURSE#C1")
    assert not reach(policy, "a*#STUDENT#S2")
    assert not reach(policy, "ab#STUDENT#S1")
    assert not reach(policy, "STUDENT#S1")


pieces = ["a", "b", "*", "?", "$", "{", "}", "${a}", "${*}", "${$}"]
signs = st.lists(st.sampled_from([*pieces, "#"]), min_size=1, max_size=5).map("".join)
names = st.lists(st.sampled_from([*pieces, " ", "."]), min_size=1, max_size=4).map("".join)


@given(signs, signs)
def test_a_key_allows_itself_and_nothing_else(key: str, other: str) -> None:
    for policy in (confined(leading_keys=[key]), confined(leading_keys=[key], leading_patterns=["-"])):
        assert reach(policy, key, a="b")
        assert reach(policy, other, a="b") == (key == other)


@given(names, names, signs)
def test_no_tenant_reaches_another(tenant: str, other: str, key: str) -> None:
    policy = confined(tenant=tenant)
    assert reach(policy, tenant_prefix(tenant) + key)
    assume(tenant != other)
    assert not reach(policy, tenant_prefix(other) + key)


# --- what is refused ---------------------------------------------------------------------------

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"access": "everything"}, "'everything' is not a kind of access; choose from read, write"),
    ({"access": ()}, "access is empty; name at least one kind"),
    (
        {"access": "scan", "tenant": "acme"},
        "'scan' access names no partition key, so it cannot be limited to some keys",
    ),
    ({"access": "stream", "leading_keys": ["a"]}, "'stream' access names no partition key"),
    ({"access": "manage", "leading_patterns": ["a"]}, "'manage' access names no partition key"),
    ({"access": "full", "tenant": "acme"}, "'scan' access names no partition key"),
    ({"leading_keys": []}, "leading_keys is \\[\\]; pass a list of at least one partition key"),
    ({"leading_keys": "STUDENT#S1"}, "leading_keys is 'STUDENT#S1'; pass a list"),
    ({"leading_patterns": [""]}, "leading_patterns is \\[''\\]; pass a list"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_could_allow_too_much_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        aws.iam_policy(EDUCATION, **options)


def test_a_table_without_a_stream_has_none_to_read() -> None:
    with pytest.raises(InvalidValue, match="has no stream to read"):
        aws.iam_policy(EVERY, access="stream")
    assert "ReadStream" not in {each["Sid"] for each in aws.iam_policy(EVERY, access="full")["Statement"]}


class Numbered(Node):
    id: int


def test_keys_that_are_no_text_are_refused() -> None:
    with pytest.raises(InvalidValue, match="the partition key id has type N, and IAM compares text"):
        aws.iam_policy(TableDefinition("Numbers", KeyAttribute("id", "N")), leading_keys=["1"])
    layout = AdjacencyList(table="Numbers", partition_key="id", sort_key=None, types={"id": "N"}, reverse=None)
    with pytest.raises(InvalidValue, match="the partition key id has type N, and IAM compares text"):
        aws.leading_key(Numbered(id=1), [Numbered], layout)


@pytest.mark.parametrize("tenant", ["", "a#b", "#", "a\n"])
def test_a_tenant_s_name_cannot_end_early(tenant: str) -> None:
    with pytest.raises(InvalidKey, match="cannot name a tenant; use printable text without '#'"):
        confined(tenant=tenant)


# --- IAM's own grammar -------------------------------------------------------------------------


def template_of(policy: dict[str, Any]) -> dict[str, Any]:
    resource = {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": policy}}
    return {"AWSTemplateFormatVersion": "2010-09-09", "Resources": {"Policy": resource}}


@pytest.mark.parametrize(
    "policy",
    [
        *(aws.iam_policy(table, access="full") for table in TABLES.values()),
        confined(leading_keys=["STUDENT#S1"]),
        confined(leading_patterns=["STUDENT#${aws:PrincipalTag/student}"]),
        confined(tenant="acme"),
    ],
)
def test_the_linter_knows_every_action_and_operator(policy: dict[str, Any]) -> None:
    assert faults(template_of(policy)) == []


def test_the_linter_finds_what_it_is_for() -> None:
    policy = confined(tenant="acme")
    policy["Statement"][1]["Action"][0] = "dynamodb:GetItems"
    assert faults(template_of(policy))

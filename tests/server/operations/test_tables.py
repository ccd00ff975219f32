"""The operations on tables: exact answers and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin.requests import Put
from tests.server.operations.calls import Calls
from tests.server.operations.conftest import Clock

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/"
NONE = {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}
A, B, C = ({"AttributeName": name, "AttributeType": "S"} for name in "abc")
HASH_A, HASH_C = ({"AttributeName": name, "KeyType": "HASH"} for name in "ac")
RANGE_B, RANGE_C = ({"AttributeName": name, "KeyType": "RANGE"} for name in "bc")
ALL = {"ProjectionType": "ALL"}
INVALID = "One or more parameter values were invalid: "


def units(read: int, write: int) -> dict[str, int]:
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": write}


def create(call: Calls, name: str = "abc", **members: Any) -> dict[str, Any]:
    given = {"AttributeDefinitions": [A], "KeySchema": [HASH_A], "BillingMode": "PAY_PER_REQUEST"} | members
    given = {key: value for key, value in given.items() if value is not None}
    answer: dict[str, Any] = call("CreateTable", TableName=name, **given)["TableDescription"]
    return answer


def described(call: Calls, name: str = "abc") -> dict[str, Any]:
    table: dict[str, Any] = call("DescribeTable", TableName=name)["Table"]
    return table


def test_a_table_with_provisioned_units(call: Calls, clock: Clock) -> None:
    made = create(call, BillingMode=None, ProvisionedThroughput=units(1, 2))
    expected = {
        "AttributeDefinitions": [A],
        "TableName": "abc",
        "KeySchema": [HASH_A],
        "TableStatus": "CREATING",
        "CreationDateTime": clock.now,
        "ProvisionedThroughput": {"NumberOfDecreasesToday": 0, **units(1, 2)},
        "TableSizeBytes": 0,
        "ItemCount": 0,
        "TableArn": f"{ARN}abc",
        "TableId": made["TableId"],
    }
    assert made == expected
    warm = {"ReadUnitsPerSecond": 1, "WriteUnitsPerSecond": 2, "Status": "ACTIVE"}
    since = {"TableStatus": "ACTIVE", "DeletionProtectionEnabled": False, "WarmThroughput": warm}
    assert described(call) == {**expected, **since}


def test_a_table_on_demand_with_indexes_and_a_stream(call: Calls, clock: Clock) -> None:
    local = {"IndexName": "loc", "KeySchema": [HASH_A, RANGE_C], "Projection": {"ProjectionType": "KEYS_ONLY"}}
    included = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["z", "y"]}
    made = create(
        call,
        AttributeDefinitions=[C, B, A],
        KeySchema=[HASH_A, RANGE_B],
        LocalSecondaryIndexes=[local],
        GlobalSecondaryIndexes=[{"IndexName": "glo", "KeySchema": [HASH_C], "Projection": included}],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
        DeletionProtectionEnabled=True,
        Tags=[{"Key": "k", "Value": "v"}],
    )
    assert made["AttributeDefinitions"] == [C, B, A]
    assert made["BillingModeSummary"] == {"BillingMode": "PAY_PER_REQUEST"}
    assert made["ProvisionedThroughput"] == {"NumberOfDecreasesToday": 0, **NONE}
    assert made["LocalSecondaryIndexes"] == [
        {**local, "IndexArn": f"{ARN}abc/index/loc", "IndexSizeBytes": 0, "ItemCount": 0}
    ]
    glo = {
        "IndexName": "glo",
        "KeySchema": [HASH_C],
        "Projection": included,
        "IndexArn": f"{ARN}abc/index/glo",
        "IndexSizeBytes": 0,
        "ItemCount": 0,
        "ProvisionedThroughput": {"NumberOfDecreasesToday": 0, **NONE},
    }
    assert made["GlobalSecondaryIndexes"] == [{**glo, "IndexStatus": "CREATING"}]
    assert made["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    assert made["LatestStreamArn"] == f"{ARN}abc/stream/{made['LatestStreamLabel']}"
    assert made["DeletionProtectionEnabled"] is True

    table = described(call)
    warm = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 4_000, "Status": "ACTIVE"}
    assert table["WarmThroughput"] == warm
    assert table["GlobalSecondaryIndexes"] == [{**glo, "IndexStatus": "ACTIVE", "WarmThroughput": warm}]
    assert table["BillingModeSummary"] == {
        "BillingMode": "PAY_PER_REQUEST",
        "LastUpdateToPayPerRequestDateTime": clock.now,
    }
    assert {each["AttributeName"] for each in table["AttributeDefinitions"]} == {"a", "b", "c"}
    assert call("ListTagsOfResource", ResourceArn=f"{ARN}abc") == {"Tags": [{"Key": "k", "Value": "v"}]}


def test_items_are_counted(call: Calls) -> None:
    create(call)
    call.store.execute([Put("abc", {"a": {"S": "x"}, "n": {"N": "1"}})])
    assert (described(call)["ItemCount"], described(call)["TableSizeBytes"]) == (1, 5)


def test_a_table_by_its_arn(call: Calls) -> None:
    create(call)
    assert described(call, f"{ARN}abc")["TableName"] == "abc"


def test_a_name_is_taken_once(call: Calls) -> None:
    create(call)
    with pytest.raises(Exception, match="ResourceInUseException: Table already exists: abc"):
        create(call)


NO_TABLE = ("ResourceNotFoundException", "Requested resource not found: Table: abc not found")
TTL = {"Enabled": True, "AttributeName": "until"}
RECOVERY = {"PointInTimeRecoveryEnabled": True}
MISSING: list[tuple[str, dict[str, Any], tuple[str, str]]] = [
    ("DescribeTable", {}, NO_TABLE),
    ("UpdateTable", {"BillingMode": "PAY_PER_REQUEST"}, NO_TABLE),
    ("DeleteTable", {}, NO_TABLE),
    ("UpdateTimeToLive", {"TimeToLiveSpecification": TTL}, NO_TABLE),
    ("DescribeTimeToLive", {}, NO_TABLE),
    ("DescribeContinuousBackups", {}, ("TableNotFoundException", "Table not found: abc")),
    (
        "UpdateContinuousBackups",
        {"PointInTimeRecoverySpecification": RECOVERY},
        ("TableNotFoundException", "Table not found: abc"),
    ),
]


@pytest.mark.parametrize(("operation", "parameters", "refusal"), MISSING)
def test_there_is_no_table(call: Calls, operation: str, parameters: dict[str, Any], refusal: tuple[str, str]) -> None:
    assert call.refusal(operation, TableName="abc", **parameters) == refusal


def test_dropping(call: Calls) -> None:
    create(call, DeletionProtectionEnabled=True)
    assert call.refusal("DeleteTable", TableName="abc") == (
        "ValidationException",
        "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.",
    )
    call("UpdateTable", TableName="abc", DeletionProtectionEnabled=False)
    assert call("DeleteTable", TableName="abc")["TableDescription"]["TableStatus"] == "DELETING"
    assert call.refusal("DescribeTable", TableName="abc") == NO_TABLE


def test_listing(call: Calls) -> None:
    for name in ("abc", "abd", "abe"):
        create(call, name)
    assert call("ListTables") == {"TableNames": ["abc", "abd", "abe"]}
    assert call("ListTables", Limit=3) == {"TableNames": ["abc", "abd", "abe"]}
    assert call("ListTables", Limit=2) == {"TableNames": ["abc", "abd"], "LastEvaluatedTableName": "abd"}
    assert call("ListTables", ExclusiveStartTableName="abd") == {"TableNames": ["abe"]}


# --- changing ----------------------------------------------------------------------------------


def test_throughput_goes_up_and_down(call: Calls, clock: Clock) -> None:
    create(call, BillingMode=None, ProvisionedThroughput=units(5, 5))
    raised = call("UpdateTable", TableName="abc", ProvisionedThroughput=units(10, 15))["TableDescription"]
    assert raised["TableStatus"] == "UPDATING"
    increased = {"NumberOfDecreasesToday": 0, "LastIncreaseDateTime": clock.now}
    assert raised["ProvisionedThroughput"] == {**increased, **units(5, 5)}
    assert described(call)["ProvisionedThroughput"] == {**increased, **units(10, 15)}
    call("UpdateTable", TableName="abc", ProvisionedThroughput=units(5, 5))
    assert described(call)["ProvisionedThroughput"] == {
        **increased,
        **units(5, 5),
        "NumberOfDecreasesToday": 1,
        "LastDecreaseDateTime": clock.now,
    }


def test_the_throughput_of_an_index(call: Calls) -> None:
    index = {"IndexName": "glo", "KeySchema": [HASH_A], "Projection": ALL, "ProvisionedThroughput": units(1, 1)}
    create(call, BillingMode=None, ProvisionedThroughput=units(5, 5), GlobalSecondaryIndexes=[index])
    change = {"Update": {"IndexName": "glo", "ProvisionedThroughput": units(3, 4)}}
    answer = call("UpdateTable", TableName="abc", GlobalSecondaryIndexUpdates=[change])["TableDescription"]
    (told,) = answer["GlobalSecondaryIndexes"]
    assert (told["IndexStatus"], told["ProvisionedThroughput"]) == (
        "UPDATING",
        {"NumberOfDecreasesToday": 0, **units(1, 1)},
    )
    (told,) = described(call)["GlobalSecondaryIndexes"]
    assert (told["IndexStatus"], told["ProvisionedThroughput"]) == (
        "ACTIVE",
        {"NumberOfDecreasesToday": 0, **units(3, 4)},
    )


def test_billing_changes(call: Calls) -> None:
    create(call, BillingMode=None, ProvisionedThroughput=units(5, 5))
    call("UpdateTable", TableName="abc", BillingMode="PAY_PER_REQUEST")
    assert described(call)["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert described(call)["ProvisionedThroughput"] == {"NumberOfDecreasesToday": 0, **NONE}
    call("UpdateTable", TableName="abc", BillingMode="PAY_PER_REQUEST")
    call("UpdateTable", TableName="abc", BillingMode="PROVISIONED", ProvisionedThroughput=units(1, 1))
    assert described(call)["BillingModeSummary"]["BillingMode"] == "PROVISIONED"


def added(**members: Any) -> dict[str, Any]:
    new = {"IndexName": "glo", "KeySchema": [HASH_C], "Projection": ALL, **members}
    return {"AttributeDefinitions": [A, C], "GlobalSecondaryIndexUpdates": [{"Create": new}]}


def removed(*names: str) -> dict[str, Any]:
    return {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": name}} for name in names]}


def test_an_index_comes_and_goes(call: Calls) -> None:
    create(call)
    coming = call("UpdateTable", TableName="abc", **added())["TableDescription"]
    assert [each["IndexStatus"] for each in coming["GlobalSecondaryIndexes"]] == ["CREATING"]
    assert [each["IndexStatus"] for each in described(call)["GlobalSecondaryIndexes"]] == ["ACTIVE"]
    assert described(call)["AttributeDefinitions"] == [A, C]
    going = call("UpdateTable", TableName="abc", **removed("glo"))["TableDescription"]
    assert [each["IndexStatus"] for each in going["GlobalSecondaryIndexes"]] == ["DELETING"]
    assert "GlobalSecondaryIndexes" not in described(call)
    assert described(call)["AttributeDefinitions"] == [A]


def test_a_key_keeps_its_type_and_what_no_key_is_is_not_kept(call: Calls) -> None:
    create(call)
    number_a, number_c = ({"AttributeName": name, "AttributeType": "N"} for name in "ac")
    change = added(KeySchema=[HASH_A, RANGE_C]) | {"AttributeDefinitions": [number_a, number_c, B]}
    call("UpdateTable", TableName="abc", **change)
    assert described(call)["AttributeDefinitions"] == [A, number_c]


def test_attributes_of_an_added_index_stay_in_their_order(call: Calls) -> None:
    create(call)
    projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["z", "y"]}
    call("UpdateTable", TableName="abc", **added(Projection=projection))
    assert described(call)["GlobalSecondaryIndexes"][0]["Projection"] == projection


def test_twenty_indexes_and_no_more(call: Calls) -> None:
    create(call)
    for number in range(20):
        call("UpdateTable", TableName="abc", **added(IndexName=f"i{number:02}"))
    fault = call.fault("UpdateTable", TableName="abc", **added())
    assert fault["message"] == f"{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of 20"


def test_settings_that_only_the_service_acts_on(call: Calls) -> None:
    limits, warm = {"MaxReadRequestUnits": 10}, {"ReadUnitsPerSecond": 12000, "WriteUnitsPerSecond": 4000}
    index = {"IndexName": "glo", "KeySchema": [HASH_C], "Projection": ALL, "OnDemandThroughput": limits}
    create(
        call,
        AttributeDefinitions=[A, C],
        TableClass="STANDARD_INFREQUENT_ACCESS",
        SSESpecification={"Enabled": True, "KMSMasterKeyId": "key"},
        OnDemandThroughput=limits,
        WarmThroughput=warm,
        GlobalSecondaryIndexes=[index],
    )
    table = described(call)
    assert table["TableClassSummary"] == {"TableClass": "STANDARD_INFREQUENT_ACCESS"}
    key = "arn:aws:kms:us-east-1:000000000000:key/key"
    assert table["SSEDescription"] == {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": key}
    told = {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": -1}
    assert table["OnDemandThroughput"] == table["GlobalSecondaryIndexes"][0]["OnDemandThroughput"] == told
    assert table["WarmThroughput"] == {**warm, "Status": "ACTIVE"}

    call("UpdateTable", TableName="abc", TableClass="STANDARD")
    call("UpdateTable", TableName="abc", SSESpecification={"Enabled": False})
    table = described(call)
    assert table["TableClassSummary"]["TableClass"] == "STANDARD"
    assert "LastUpdateDateTime" in table["TableClassSummary"]
    assert "SSEDescription" not in table
    assert table["OnDemandThroughput"] == told


def test_a_stream_is_switched_on_and_off(call: Calls, clock: Clock) -> None:
    create(call)
    on = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    answer = call("UpdateTable", TableName="abc", StreamSpecification=on)["TableDescription"]
    assert answer["StreamSpecification"] == on
    first = answer["LatestStreamArn"]
    assert call.refusal("UpdateTable", TableName="abc", StreamSpecification=on) == (
        "ValidationException",
        "Table already has an enabled stream: TableName: abc",
    )
    call("UpdateTable", TableName="abc", StreamSpecification={"StreamEnabled": False})
    assert "StreamSpecification" not in described(call)
    assert described(call)["LatestStreamArn"] == first
    clock.now += 1
    call("UpdateTable", TableName="abc", StreamSpecification=on)
    assert described(call)["LatestStreamArn"] != first


UNCHANGED = (
    "The provisioned throughput for the table will not change. The requested value equals the current value."
    " Current ReadCapacityUnits provisioned for the table: 5. Requested ReadCapacityUnits: 5."
    " Current WriteCapacityUnits provisioned for the table: 6. Requested WriteCapacityUnits: 6."
    " Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."
)
LIMIT = "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"
REFUSED: list[tuple[str, dict[str, Any], tuple[str, str]]] = [
    ("units", {"ProvisionedThroughput": units(5, 6)}, ("ValidationException", UNCHANGED)),
    (
        "units",
        {"BillingMode": "PAY_PER_REQUEST", "ProvisionedThroughput": units(5, 6)},
        (
            "ValidationException",
            f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified"
            " when BillingMode is PAY_PER_REQUEST",
        ),
    ),
    (
        "demand",
        {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(1, 1)},
        ("ValidationException", f"{INVALID}ProvisionedThroughput must be specified for index: glo"),
    ),
    (
        "units",
        {"OnDemandThroughput": {"MaxReadRequestUnits": 1}},
        (
            "ValidationException",
            f"{INVALID}OnDemandThroughput can only be specified when BillingMode is PAY_PER_REQUEST",
        ),
    ),
    ("demand", added(), ("ValidationException", "Attempting to create an index which already exists")),
    (
        "demand",
        added(IndexName="new", ProvisionedThroughput=units(1, 1)),
        (
            "ValidationException",
            f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: new"
            " when BillingMode is PAY_PER_REQUEST",
        ),
    ),
    (
        "units",
        added(),
        (
            "ValidationException",
            f"{INVALID}Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: glo",
        ),
    ),
    ("demand", removed("none"), ("ResourceNotFoundException", "Requested resource not found")),
    ("demand", removed("one", "two"), ("LimitExceededException", LIMIT)),
    (
        "demand",
        removed("loc"),
        ("ValidationException", "Cannot delete an index that is not a GlobalSecondaryIndex: loc"),
    ),
    (
        "demand",
        {"StreamSpecification": {"StreamEnabled": False}},
        ("ValidationException", "Table has no stream to disable: TableName: demand"),
    ),
    (
        "units",
        {
            "GlobalSecondaryIndexUpdates": [
                {"Update": {"IndexName": "x.y", "ProvisionedThroughput": units(10**12 + 1, 1)}}
            ]
        },
        (
            "ValidationException",
            "This operation cannot be performed with given input values."
            " Please contact DynamoDB service team for more info: Action Blocked: IndexUpdate",
        ),
    ),
]


@pytest.mark.parametrize(("table", "change", "refusal"), REFUSED)
def test_refused_changes(call: Calls, table: str, change: dict[str, Any], refusal: tuple[str, str]) -> None:
    create(call, "units", BillingMode=None, ProvisionedThroughput=units(5, 6))
    create(
        call,
        "demand",
        AttributeDefinitions=[A, B, C],
        KeySchema=[HASH_A, RANGE_B],
        LocalSecondaryIndexes=[{"IndexName": "loc", "KeySchema": [HASH_A, RANGE_C], "Projection": ALL}],
        GlobalSecondaryIndexes=[{"IndexName": "glo", "KeySchema": [HASH_C], "Projection": ALL}],
    )
    assert call.refusal("UpdateTable", TableName=table, **change) == refusal


# --- what hangs on tables ----------------------------------------------------------------------


def test_time_to_live(call: Calls) -> None:
    create(call)
    off = {"Enabled": False, "AttributeName": "until"}

    def refusal(**specification: Any) -> str | None:
        return call.refusal("UpdateTimeToLive", TableName="abc", TimeToLiveSpecification=specification)[1]

    assert call("DescribeTimeToLive", TableName="abc") == {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
    assert refusal(**off) == "TimeToLive is already disabled"
    for wanted in (TTL, off, TTL):
        answer = call("UpdateTimeToLive", TableName="abc", TimeToLiveSpecification=wanted)
        assert answer == {"TimeToLiveSpecification": wanted}
    assert refusal(**TTL) == "TimeToLive is already enabled"
    other = "TimeToLive is active on a different AttributeName: current AttributeName is until"
    assert refusal(Enabled=True, AttributeName="other") == other
    assert call("DescribeTimeToLive", TableName="abc") == {
        "TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": "until"}
    }


def tags(**given: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in given.items()]


def test_tags(call: Calls) -> None:
    create(call)
    arn = f"{ARN}abc"
    assert call("ListTagsOfResource", ResourceArn=arn) == {"Tags": []}
    assert call("TagResource", ResourceArn=arn, Tags=tags(a="1", b="2")) is None
    assert call("TagResource", ResourceArn=arn, Tags=tags(a="3")) is None
    assert call("UntagResource", ResourceArn=arn, TagKeys=["b", "x"]) is None
    assert call("ListTagsOfResource", ResourceArn=arn) == {"Tags": tags(a="3")}

    assert call.refusal("TagResource", ResourceArn=arn, Tags=[*tags(a="1"), *tags(a="2")]) == (
        "ValidationException",
        "Duplicate Tag Keys provided as input: Duplicate Tag Key found a",
    )
    for bad in ("aws:a", "a;b"):
        assert call.refusal("TagResource", ResourceArn=arn, Tags=tags(**{bad: ""}))[0] == "ValidationException"
    many = tags(**{f"k{each}": "" for each in range(50)})
    assert call.refusal("TagResource", ResourceArn=arn, Tags=many) == (
        "ValidationException",
        "Number of Tags exceed the current limit for the provided ResourceArn",
    )
    call("TagResource", ResourceArn=arn, Tags=many[1:])


def test_tags_of_no_table(call: Calls) -> None:
    arn = f"{ARN}none"
    missing = ("ResourceNotFoundException", f"Requested resource not found: ResourcArn: {arn} not found")
    assert call.refusal("TagResource", ResourceArn=arn, Tags=tags(a="1")) == missing
    assert call.refusal("ListTagsOfResource", ResourceArn=arn) == missing
    assert call.refusal("UntagResource", ResourceArn=arn, TagKeys=["a"]) == (
        "ResourceNotFoundException",
        "Requested resource not found",
    )


def test_recovery(call: Calls) -> None:
    create(call)

    def status() -> Any:
        answer = call("DescribeContinuousBackups", TableName="abc")["ContinuousBackupsDescription"]
        return answer["ContinuousBackupsStatus"], answer["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"]

    assert status() == ("ENABLED", "DISABLED")
    wanted = {**RECOVERY, "RecoveryPeriodInDays": 7}
    call("UpdateContinuousBackups", TableName="abc", PointInTimeRecoverySpecification=wanted)
    assert status() == ("ENABLED", "ENABLED")
    told = call("DescribeContinuousBackups", TableName="abc")["ContinuousBackupsDescription"]
    recovery = told["PointInTimeRecoveryDescription"]
    assert recovery["RecoveryPeriodInDays"] == 7
    assert recovery["EarliestRestorableDateTime"] <= recovery["LatestRestorableDateTime"]


def test_the_account(call: Calls) -> None:
    assert call("DescribeLimits")["TableMaxReadCapacityUnits"] == 40_000


NOTHING: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("ListBackups", {}, {"BackupSummaries": []}),
    ("ListContributorInsights", {}, {"ContributorInsightsSummaries": []}),
    ("ListExports", {}, {"ExportSummaries": []}),
    ("ListGlobalTables", {}, {"GlobalTables": []}),
    ("ListImports", {}, {"ImportSummaryList": []}),
    (
        "DescribeContributorInsights",
        {"TableName": "abc"},
        {"TableName": "abc", "ContributorInsightsStatus": "DISABLED"},
    ),
    (
        "DescribeKinesisStreamingDestination",
        {"TableName": "abc"},
        {"TableName": "abc", "KinesisDataStreamDestinations": []},
    ),
]


@pytest.mark.parametrize(("operation", "parameters", "answer"), NOTHING)
def test_what_there_is_none_of(call: Calls, operation: str, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
    create(call)
    assert call(operation, **parameters) == answer


def test_what_is_not_found_because_there_is_none(call: Calls) -> None:
    create(call)
    assert call.refusal("DescribeGlobalTable", GlobalTableName="abc")[0] == "GlobalTableNotFoundException"
    assert call.refusal("GetResourcePolicy", ResourceArn=f"{ARN}abc")[0] == "PolicyNotFoundException"
    assert call.fault("GetResourcePolicy", ResourceArn=f"{ARN}none")["code"] == "ResourceNotFoundException"
    assert call.refusal("DescribeKinesisStreamingDestination", TableName="none")[0] == "ResourceNotFoundException"

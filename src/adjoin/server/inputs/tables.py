"""What the operations on tables take: their life, and what hangs on them."""

from __future__ import annotations

from dataclasses import replace

from adjoin.server.inputs.members import FLAG, LONG, NAME, NOTHING, POSITIVE_LONG, TEXT
from adjoin.server.shapes import Listing, Structure, TableReference, Text, Whole, structure
from adjoin.units import MAX_TAG_KEY, MAX_TAG_VALUE

_ATTRIBUTE_NAME = Text(least=1, most=255)

_DEFINITIONS = Listing(
    structure(
        "AttributeDefinition",
        "AttributeName AttributeType",
        AttributeName=_ATTRIBUTE_NAME,
        AttributeType=Text(choices=("B", "N", "S")),
    )
)

_KEY_SCHEMA = Listing(
    structure(
        "KeySchemaElement",
        "AttributeName KeyType",
        AttributeName=_ATTRIBUTE_NAME,
        KeyType=Text(choices=("HASH", "RANGE")),
    ),
    least=1,
    most=2,
)

_PROJECTION = structure(
    "Projection",
    ProjectionType=Text(choices=("ALL", "INCLUDE", "KEYS_ONLY")),
    NonKeyAttributes=Listing(_ATTRIBUTE_NAME, least=1, most=20),
)

_THROUGHPUT = structure(
    "ProvisionedThroughput",
    "WriteCapacityUnits ReadCapacityUnits",
    WriteCapacityUnits=POSITIVE_LONG,
    ReadCapacityUnits=POSITIVE_LONG,
)

_ON_DEMAND_THROUGHPUT = structure("OnDemandThroughput", MaxReadRequestUnits=LONG, MaxWriteRequestUnits=LONG)
_WARM_THROUGHPUT = structure("WarmThroughput", ReadUnitsPerSecond=LONG, WriteUnitsPerSecond=LONG)

_BILLING = Text(choices=("PROVISIONED", "PAY_PER_REQUEST"))
_TABLE_CLASS = Text(choices=("STANDARD", "STANDARD_INFREQUENT_ACCESS"))

_STREAM = structure(
    "StreamSpecification",
    "StreamEnabled",
    StreamEnabled=FLAG,
    StreamViewType=Text(choices=("NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY")),
)

_ENCRYPTION = structure(
    "SSESpecification",
    Enabled=FLAG,
    SSEType=Text(choices=("AES256", "KMS")),
    KMSMasterKeyId=TEXT,
)

_TAGS = Listing(
    structure("Tag", "Key Value", Key=Text(least=1, most=MAX_TAG_KEY), Value=Text(least=0, most=MAX_TAG_VALUE))
)

_LOCAL_INDEX = structure(
    "LocalSecondaryIndex",
    "IndexName KeySchema Projection",
    IndexName=NAME,
    KeySchema=_KEY_SCHEMA,
    Projection=_PROJECTION,
)

_GLOBAL_INDEX = structure(
    "GlobalSecondaryIndex",
    "IndexName KeySchema Projection",
    IndexName=NAME,
    KeySchema=_KEY_SCHEMA,
    Projection=_PROJECTION,
    ProvisionedThroughput=_THROUGHPUT,
    OnDemandThroughput=_ON_DEMAND_THROUGHPUT,
    WarmThroughput=_WARM_THROUGHPUT,
)

_INDEX_UPDATE = structure(
    "GlobalSecondaryIndexUpdate",
    Update=replace(
        structure(
            "UpdateGlobalSecondaryIndexAction",
            "IndexName",
            IndexName=NAME,
            ProvisionedThroughput=_THROUGHPUT,
            OnDemandThroughput=_ON_DEMAND_THROUGHPUT,
            WarmThroughput=_WARM_THROUGHPUT,
        ),
        one_of=("ProvisionedThroughput", "OnDemandThroughput", "WarmThroughput"),
    ),
    Create=structure(
        "CreateGlobalSecondaryIndexAction",
        "Projection IndexName KeySchema",
        Projection=_PROJECTION,
        IndexName=NAME,
        ProvisionedThroughput=_THROUGHPUT,
        OnDemandThroughput=_ON_DEMAND_THROUGHPUT,
        WarmThroughput=_WARM_THROUGHPUT,
        KeySchema=_KEY_SCHEMA,
    ),
    Delete=structure("DeleteGlobalSecondaryIndexAction", "IndexName", IndexName=NAME),
)

# Who asks for which table is looked at before any limit: that a name or an ARN is there, and how long a name
# is, are rules of `preconditions`.
_TABLE = TableReference(lengths=False)

_CREATE = structure(
    "CreateTableInput",
    "AttributeDefinitions KeySchema",
    AttributeDefinitions=_DEFINITIONS,
    TableName=_TABLE,
    BillingMode=_BILLING,
    ProvisionedThroughput=_THROUGHPUT,
    KeySchema=_KEY_SCHEMA,
    LocalSecondaryIndexes=Listing(_LOCAL_INDEX),
    GlobalSecondaryIndexes=Listing(_GLOBAL_INDEX),
    StreamSpecification=_STREAM,
    SSESpecification=_ENCRYPTION,
    Tags=_TAGS,
    TableClass=_TABLE_CLASS,
    DeletionProtectionEnabled=FLAG,
    WarmThroughput=_WARM_THROUGHPUT,
    ResourcePolicy=TEXT,
    OnDemandThroughput=_ON_DEMAND_THROUGHPUT,
)

_UPDATE = structure(
    "UpdateTableInput",
    TableName=_TABLE,
    ProvisionedThroughput=_THROUGHPUT,
    BillingMode=_BILLING,
    GlobalSecondaryIndexUpdates=Listing(_INDEX_UPDATE),
    AttributeDefinitions=_DEFINITIONS,
    StreamSpecification=_STREAM,
    SSESpecification=_ENCRYPTION,
    ReplicaUpdates=Listing(structure("ReplicationGroupUpdate"), least=1),
    TableClass=_TABLE_CLASS,
    DeletionProtectionEnabled=FLAG,
    OnDemandThroughput=_ON_DEMAND_THROUGHPUT,
    WarmThroughput=_WARM_THROUGHPUT,
)

TABLE_INPUTS: dict[str, Structure] = {
    "CreateTable": _CREATE,
    "UpdateTable": _UPDATE,
    "DescribeTable": structure("DescribeTableInput", TableName=_TABLE),
    "DeleteTable": structure("DeleteTableInput", TableName=_TABLE),
    "ListTables": structure("ListTablesInput", Limit=Whole("Integer", least=1, most=100), ExclusiveStartTableName=NAME),
    "DescribeTimeToLive": structure("DescribeTimeToLiveInput", TableName=_TABLE),
    "UpdateTimeToLive": structure(
        "UpdateTimeToLiveInput",
        "TimeToLiveSpecification",
        TableName=_TABLE,
        TimeToLiveSpecification=structure(
            "TimeToLiveSpecification",
            "Enabled AttributeName",
            Enabled=FLAG,
            AttributeName=_ATTRIBUTE_NAME,
        ),
    ),
    "DescribeContinuousBackups": structure("DescribeContinuousBackupsInput", TableName=_TABLE),
    "UpdateContinuousBackups": structure(
        "UpdateContinuousBackupsInput",
        "PointInTimeRecoverySpecification",
        TableName=_TABLE,
        PointInTimeRecoverySpecification=structure(
            "PointInTimeRecoverySpecification",
            "PointInTimeRecoveryEnabled",
            PointInTimeRecoveryEnabled=FLAG,
            RecoveryPeriodInDays=Whole("Integer", least=1, most=35),
        ),
    ),
    "TagResource": structure("TagResourceInput", "Tags", ResourceArn=TEXT, Tags=_TAGS),
    "UntagResource": structure(
        "UntagResourceInput", "TagKeys", ResourceArn=TEXT, TagKeys=Listing(Text(least=1, most=MAX_TAG_KEY))
    ),
    "ListTagsOfResource": structure("ListTagsOfResourceInput", ResourceArn=TEXT, NextToken=TEXT),
    "DescribeLimits": NOTHING,
    "DescribeEndpoints": NOTHING,
}

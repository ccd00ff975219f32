"""What the operations take that ask for what there is none of here."""

from __future__ import annotations

from adjoin.server.inputs.members import NAME, POSITIVE, TABLE, TEXT
from adjoin.server.shapes import Structure, Text, Whole, structure

_RESOURCE = Text(least=1, most=1024)

ABSENT_INPUTS: dict[str, Structure] = {
    "DescribeContributorInsights": structure(
        "DescribeContributorInsightsInput", "TableName", TableName=TABLE, IndexName=NAME
    ),
    "DescribeGlobalTable": structure("DescribeGlobalTableInput", "GlobalTableName", GlobalTableName=NAME),
    "DescribeKinesisStreamingDestination": structure(
        "DescribeKinesisStreamingDestinationInput", "TableName", TableName=TABLE
    ),
    "GetResourcePolicy": structure("GetResourcePolicyInput", "ResourceArn", ResourceArn=Text(least=1, most=1283)),
    "ListBackups": structure(
        "ListBackupsInput",
        TableName=TABLE,
        Limit=Whole("Integer", least=1, most=100),
        ExclusiveStartBackupArn=Text(least=37, most=1024),
        BackupType=Text(choices=("USER", "SYSTEM", "AWS_BACKUP", "ALL")),
    ),
    "ListContributorInsights": structure(
        "ListContributorInsightsInput", TableName=TABLE, NextToken=TEXT, MaxResults=Whole("Integer", most=100)
    ),
    "ListExports": structure(
        "ListExportsInput", TableArn=_RESOURCE, MaxResults=Whole("Integer", least=1, most=25), NextToken=TEXT
    ),
    "ListGlobalTables": structure(
        "ListGlobalTablesInput", ExclusiveStartGlobalTableName=NAME, Limit=POSITIVE, RegionName=TEXT
    ),
    "ListImports": structure(
        "ListImportsInput",
        TableArn=_RESOURCE,
        PageSize=Whole("Integer", least=1, most=25),
        NextToken=Text(least=112, most=1024, pattern="([0-9a-f]{16})+"),
    ),
}

"""A graph's table for AWS's own tools: templates, permissions and a model to look at; and a Lambda function.

Most functions here turn a `TableDefinition` into what another tool reads, always the same for the
same table, and call nothing. `lambda_handler` makes the function that keeps aggregates true on AWS. Nothing
beyond adjoin's own dependencies is imported.
"""

from __future__ import annotations

from adjoin.aws.cdk_props import cdk
from adjoin.aws.cloudformation_template import cloudformation
from adjoin.aws.definitions import leading_key, table
from adjoin.aws.iam_policies import Access, iam_policy
from adjoin.aws.lambda_function import lambda_handler, record_handler
from adjoin.aws.stream_filters import stream_filter
from adjoin.aws.terraform_resource import terraform
from adjoin.aws.workbench_model import workbench

__all__ = [
    "table",
    "cloudformation",
    "cdk",
    "terraform",
    "workbench",
    "iam_policy",
    "Access",
    "leading_key",
    "lambda_handler",
    "record_handler",
    "stream_filter",
]

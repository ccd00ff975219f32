"""A graph's table for AWS's own tools: templates, IAM policies and a NoSQL Workbench model; and a Lambda function.

Most functions here turn a `TableDefinition` into the input of another tool. They call no service, and the same table
always gives the same output. `lambda_handler` makes the Lambda function that keeps aggregates up to date on AWS. This
package imports nothing beyond adjoin's own dependencies.
"""

from __future__ import annotations

from adjoin.aws.iam_policies import Access, iam_policy
from adjoin.aws.lambda_function import lambda_handler, record_handler, stream_filter
from adjoin.aws.templates import cdk, cloudformation, leading_key, table, terraform
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

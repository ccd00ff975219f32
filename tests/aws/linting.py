"""CloudFormation's linter, which knows the schemas of resources and the actions of IAM."""

from __future__ import annotations

import json
from typing import Any

from cfnlint import api
from cfnlint.config import ManualArgs


def faults(template: dict[str, Any]) -> list[str]:
    """The linter's errors and warnings."""
    found = api.lint(json.dumps(template), config=ManualArgs(regions=["eu-west-1"]))
    return [f"{each.rule.id} {each.message}" for each in found]

"""The boto3 code of the Education document, run as it is printed, on a file that `adjoin serve` serves.

Where the server is comes from the environment; the document's own words are data here. What it leaves out is the
two lines that every program has: which table, and where `Key` comes from.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from adjoin.server.serving import serve
from examples import education
from tests.examples.test_education import DOCUMENT
from tests.examples.test_filled_by_boto3 import EDUCATION

PROGRAM = """
import boto3
from boto3.dynamodb.conditions import Key
table = boto3.resource('dynamodb').Table('Education')
"""

STUDENT_DETAILS = """\
response = table.get_item(
Key={
'PK': 'STUDENT#S1',
'SK': 'METADATA'
}
)
"""

COURSES_OF_STUDENT = """\
response = table.query(
KeyConditionExpression=Key('PK').eq('STUDENT#S1') &
Key('SK').begins_with('COURSE#')
)
"""

STUDENTS_IN_COURSE = """\
response = table.query(
IndexName='GSI1',
KeyConditionExpression=Key('GSI1-PK').eq('COURSE#C1')
)
"""

RECORDS = """
{
"PK": "STUDENT#S1", # Partition Key
"SK": "METADATA", # Sort Key
"EntityType": "STUDENT", # Helps in filtering
"Name": "John Doe",
"Email": "john@example.com",
"YearLevel": 3
},
{
"PK": "COURSE#C1", # Partition Key
"SK": "METADATA", # Sort Key
"EntityType": "COURSE", # Helps in filtering
"Name": "Advanced Mathematics",
"Professor": "Dr. Smith",
"Credits": 3
},
{
"PK": "STUDENT#S1", # Partition Key
"SK": "COURSE#C1", # Sort Key
"GSI1-PK": "COURSE#C1", # For reverse lookup
"GSI1-SK": "STUDENT#S1", # For reverse lookup
"EntityType": "ENROLLMENT",
"EnrollmentDate": "2024-03-31T10:00:00",
"Grade": "A"
},
"""

KEY_SCHEMA = """
{
TableName: "Education",
KeySchema: [
{ AttributeName: "PK", KeyType: "HASH" },
{ AttributeName: "SK", KeyType: "RANGE" }
],
GlobalSecondaryIndexes: [{
IndexName: "GSI1",
KeySchema: [
{ AttributeName: "GSI1-PK", KeyType: "HASH" },
{ AttributeName: "GSI1-SK", KeyType: "RANGE" }
]
}
]
}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A served file with the document's table and records, which boto3 made and wrote."""
    path = tmp_path / "education.db"
    with serve(path, durability="process") as server:
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
        for name, value in {
            "AWS_ENDPOINT_URL_DYNAMODB": server.endpoint,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
        }.items():
            monkeypatch.setenv(name, value)
        table = boto3.resource("dynamodb").create_table(**EDUCATION)
        table.wait_until_exists()
        with table.batch_writer() as batch:
            for item in DOCUMENT:
                batch.put_item(Item=item)
        yield path


def run(snippet: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(compile(PROGRAM + snippet, "snippet", "exec"), namespace)
    return namespace["response"]


def test_the_table_is_the_one_of_the_document() -> None:
    words = ("TableName", "KeySchema", "AttributeName", "KeyType", "GlobalSecondaryIndexes", "IndexName")
    printed = eval(KEY_SCHEMA.strip().replace("\n", " "), {word: word for word in words})
    index = printed.pop("GlobalSecondaryIndexes")[0]
    assert printed.items() <= EDUCATION.items()
    assert index.items() <= EDUCATION["GlobalSecondaryIndexes"][0].items()


def test_get_student_details(file: Path) -> None:
    response = run(STUDENT_DETAILS)
    assert response["Item"] == DOCUMENT[0]
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_get_all_courses_for_student(file: Path) -> None:
    response = run(COURSES_OF_STUDENT)
    assert [(item["SK"], item["Grade"]) for item in response["Items"]] == [("COURSE#C1", "A"), ("COURSE#C2", "B+")]
    assert (response["Count"], response["ScannedCount"]) == (2, 2)


def test_get_all_students_in_course(file: Path) -> None:
    response = run(STUDENTS_IN_COURSE)
    assert [(item["PK"], item["Grade"]) for item in response["Items"]] == [("STUDENT#S1", "A"), ("STUDENT#S2", "A-")]


def test_records_are_put_as_they_are_printed(file: Path) -> None:
    records = ast.literal_eval(f"[{textwrap.dedent(RECORDS)}]")
    put = "response = [table.put_item(Item=record, ReturnValues='ALL_OLD')['Attributes'] for record in " + repr(records)
    assert run(put + "]") == records, "each replaces the same record, which the table has already"


def test_the_graph_finds_the_same_in_the_file(file: Path) -> None:
    with education.open_graph(file) as g:
        assert [edge.target for edge in education.courses_of_student(g)] == [
            item["SK"].removeprefix("COURSE#") for item in run(COURSES_OF_STUDENT)["Items"]
        ]
        student = education.student(g)
        assert student is not None
        assert student.name == run(STUDENT_DETAILS)["Item"]["Name"]
        g.update(education.Student, "S1", name="Jo")
        assert run(STUDENT_DETAILS)["Item"]["Name"] == "Jo"

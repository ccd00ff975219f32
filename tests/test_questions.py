"""Twenty questions of somebody who is new: where would a change go? Each has the files that are right.

They were written before anybody answered them. Then somebody who had not read the source answered them from the
documents and the names of files alone. An answer is right if it names the first file of the question, and at least half
of all. 17 were right. Two more were right, but guesses: where error codes become errors, and how often an update is
tried. One was wrong: a mark of a field was looked for in `fields`. The documents say these three places since, and what
else was missed: `verbs` for a method of the graph, the modules of `server/grammar`, engines, and who reads options of a
location.

A second newcomer answered them later, for the tree and the documents of that time: `answered` has these answers. All
20 were right. `doubt` says of what the newcomer was not sure. What misled stands in the documents now: modules of
ranks and means in the recipe of an aggregate, where an option of a location goes, the parts of `verbs`, where the
size of an item is limited, which of two `copies` fills a field in, and where the number of attempts is. `python -m
tests.test_questions` prints the questions, for the next newcomer.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent


class Question(NamedTuple):
    """Where a change goes: the most important file first. A path without a folder above it is in src/adjoin."""

    asks: str
    files: tuple[str, ...]
    answered: tuple[str, ...]
    doubt: str = ""
    """What the newcomer was not sure of."""


QUESTIONS = (
    Question(
        "A node should have the median of a field of its edges. Where is such a new aggregate declared, "
        "where is it said what one edge contributes, and where is the same number computed a second time, "
        "from a whole table?",
        (
            "aggregates.py",
            "plans/counting/contributions.py",
            "batch/aggregates.py",
            "declarations.py",
            "rules.py",
        ),
        (
            "aggregates.py",
            "plans/counting/contributions.py",
            "batch/aggregates.py",
            "declarations.py",
            "rules.py",
            "plans/maintenance/ranks.py",
            "plans/counting/rank_items.py",
        ),
        doubt="whether ranks can give a middle value",
    ),
    Question(
        "DynamoDB begins to answer with an error code that is not known yet. It means: try again later. Where "
        "does the code go?",
        ("stores/dynamodb/client.py",),
        ("stores/dynamodb/client.py",),
    ),
    Question(
        "`adjoin serve` should answer one more operation of DynamoDB on items. Where is its shape, where are "
        "its rules, and which files outside the source have to change?",
        (
            "server/operations/items.py",
            "docs/serve.md",
            "tests/server/refusals.py",
        ),
        (
            "server/operations/items.py",
            "server/operations/shapes.py",
            "docs/serve.md",
            "tests/server/refusals.py",
        ),
    ),
    Question(
        "A location should take one more option: `dynamodb://Orders?proxy=…`. Where is the option read from the text?",
        ("locations.py",),
        (
            "locations.py",
            "stores/dynamodb/opening.py",
            "docs/dynamodb.md",
        ),
        doubt="where the option is used",
    ),
    Question(
        'A graph should have a method `g.exists(Student, "S1")`. Where is its plan, where are its arguments '
        "checked, and where is the method itself?",
        (
            "graph.py",
            "async_graph.py",
            "verbs.py",
            "plans/read.py",
            "docs/access-patterns.md",
        ),
        (
            "verbs.py",
            "graph.py",
            "async_graph.py",
            "plans/read.py",
            "docs/access-patterns.md",
        ),
        doubt="whether the plan belongs in plans/read",
    ),
    Question(
        "The command line should have one more command. Which files are written or changed?",
        (
            "cli/__init__.py",
            "docs/cli.md",
        ),
        (
            "cli/__init__.py",
            "docs/cli.md",
            "docs/cli-reference.md",
        ),
    ),
    Question(
        "DynamoDB adds a function to condition expressions. Where does `adjoin serve` read its text, and "
        "where is it evaluated on an item of a file?",
        (
            "evaluate.py",
            "server/grammar/parser.py",
            "server/grammar/expressions.py",
            "server/grammar/rules.py",
            "expressions.py",
        ),
        (
            "server/grammar/parser.py",
            "server/grammar/rules.py",
            "server/grammar/expressions.py",
            "evaluate.py",
            "expressions.py",
        ),
        doubt="whether the parser or its caller reads the text",
    ),
    Question(
        "A field should have one more mark beside `Unique()` and `Indexed()`. Where is the mark declared, and "
        "where does adjoin find out which fields of a class have it?",
        (
            "marks.py",
            "field_types.py",
        ),
        (
            "marks.py",
            "field_types.py",
            "entity_types.py",
        ),
    ),
    Question(
        "Dates should also be stored in weeks since 1970. Where is that format read and written?",
        ("formats.py",),
        (
            "formats.py",
            "docs/guide.md",
        ),
        doubt="whether keys and batch jobs share it",
    ),
    Question(
        "AWS changes the price of a million writes. Where is the price?",
        ("cost.py",),
        (
            "cost.py",
            "docs/cost-model.md",
        ),
    ),
    Question(
        "DynamoDB allows items of 1 MB instead of 400 KB. Where is the limit?",
        ("units.py",),
        (
            "units.py",
            "items.py",
        ),
        doubt="three places are named for limits",
    ),
    Question(
        "The body of a row in a file should be compressed. Which module writes and reads it, "
        "and which page describes it?",
        (
            "stores/sqlite/rows.py",
            "docs/file-format.md",
        ),
        (
            "stores/sqlite/rows.py",
            "docs/file-format.md",
        ),
    ),
    Question(
        "A node's name changes, and edges repeat it in a copied field. Which module brings these edges up to "
        "date, and which one fills the field in when an edge is written?",
        (
            "plans/maintenance/copies.py",
            "plans/copies.py",
        ),
        (
            "plans/maintenance/copies.py",
            "plans/copies.py",
        ),
        doubt="which of the two fills the field in",
    ),
    Question(
        "`adjoin verify` should report one more kind of finding. Where are the findings made?",
        ("batch/audit.py",),
        (
            "batch/audit.py",
            "batch/ledgers.py",
            "batch/satellites.py",
        ),
    ),
    Question(
        "A batch job should also run on another engine than DuckDB and Spark. Which module says what an engine is?",
        ("batch/engines.py",),
        (
            "batch/engines.py",
            "batch/spark.py",
        ),
    ),
    Question(
        "An update should be tried 80 times, not 50, if other programs always write first. Where is the number?",
        ("plans/steps/again.py",),
        ("plans/steps/again.py",),
        doubt="whether all updates use this number",
    ),
    Question(
        "`adjoin serve` should refuse requests with heads of more than 32 KB. Where is the limit?",
        ("server/reading.py",),
        (
            "server/reading.py",
            "docs/serve.md",
        ),
    ),
    Question(
        "A hot value of an indexed field should get more shards a little later than it does now. Where is "
        "that decided?",
        ("sharding/policy.py",),
        ("sharding/policy.py",),
    ),
    Question(
        "The Lambda function should report something else to the event source mapping. Which module? And "
        "where would an action be added that the policy of its role allows?",
        (
            "aws/lambda_function.py",
            "aws/iam_policies.py",
        ),
        (
            "aws/lambda_function.py",
            "aws/iam_policies.py",
        ),
    ),
    Question(
        "One change of the stream cannot be applied, and the others should go on. Which module sees to that, "
        "and which one records the change?",
        (
            "plans/maintenance/isolating.py",
            "plans/maintenance/report.py",
        ),
        (
            "plans/maintenance/isolating.py",
            "plans/maintenance/report.py",
        ),
    ),
)


def is_named(file: str, pages: str) -> bool:
    """Whether the pages for newcomers name a file, with its folder or without."""
    stem = file.removesuffix(".py")
    name = stem.rpartition("/")[2]
    return any(text in pages for text in (file, f"`{stem}`", f"`{name}`", f"`{name}.py`"))


def path_of(file: str) -> Path:
    return ROOT / file if file.startswith(("docs/", "tests/")) else ROOT / "src" / "adjoin" / file


def test_there_are_twenty() -> None:
    assert len({question.asks for question in QUESTIONS}) == 20


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.files[0])
def test_the_files_of_an_answer_exist(question: Question) -> None:
    """If a file moves, the question gets its new place, and the documents have to lead there."""
    assert [file for file in question.files if not path_of(file).is_file()] == []


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.files[0])
def test_a_newcomer_answered_right(question: Question) -> None:
    """The first file is named, and at least half of all."""
    assert question.files[0] in question.answered
    assert 2 * len({*question.files} & {*question.answered}) >= len(question.files)
    assert [file for file in question.answered if not path_of(file).is_file()] == []


def test_the_documents_name_the_first_file_of_each_answer() -> None:
    pages = "".join((ROOT / page).read_text() for page in ("CONTRIBUTING.md", "docs/architecture.md"))
    assert [question.files[0] for question in QUESTIONS if not is_named(question.files[0], pages)] == []


if __name__ == "__main__":
    for number, each in enumerate(QUESTIONS, 1):
        print(f"{number}. {each.asks}")

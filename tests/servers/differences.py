"""Where an independent server departs from the service, and why that is no fault of adjoin.

`DIFFERENCES` names tests that cannot pass on a server. They are expected to fail, strictly: when a new
version of the server comes nearer to the service, the suite says so, and the row goes. `WORDS` has the
messages in which a server says the same as the service in other words.

Where a reason quotes, it is from the Amazon DynamoDB Developer Guide or API Reference. "Measured" is what
the authors of other suites found at the service: Alternator's tests, and dynamodb-conformance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest

from adjoin.errors import AdjoinError
from adjoin.stores.interface import Store
from tests.servers.own_tables import OwnTables


@dataclass(frozen=True)
class Difference:
    """A test that a server fails; of a test with many cases those whose id holds a match of `cases`."""

    server: str
    test: str
    reason: str
    cases: str = ""

    def is_about(self, server: str, item: pytest.Function) -> bool:
        return (
            server == self.server
            and item.originalname == self.test
            and re.search(self.cases, item.callspec.id) is not None
        )


def _each(server: str, reason: str, tests: dict[str, str]) -> tuple[Difference, ...]:
    """One reason for several tests, each with its cases."""
    return tuple(Difference(server, test, reason, cases) for test, cases in tests.items())


# --- MiniStack ---------------------------------------------------------------------------------

_MINISTACK: tuple[Difference, ...] = (
    *_each(
        "ministack",
        'counts every read as one of 4 KB; "Item sizes for reads are rounded up to the next 4 KB multiple"',
        {
            "test_units_of_a_get": "4097|409600",
            "test_a_projection_cuts_the_item_but_not_the_cost": "",
            "test_a_query_adds_up_sizes_before_it_rounds": "-5-",
            "test_an_index_read_is_charged_the_projected_size": "",
            "test_units_of_a_transact_get": "",
        },
    ),
    *_each(
        "ministack",
        "says nothing of what BatchGetItem consumed, whatever ReturnConsumedCapacity asks",
        {"test_batch_get_rounds_each_item": ""},
    ),
    *_each(
        "ministack",
        'takes an update without UpdateExpression in a transaction; it is "Required: Yes" in Update of the API',
        {"test_what_is_invalid_in_itself_is_no_cancellation": "update of nothing"},
    ),
    *_each(
        "ministack",
        'answers BatchGetItem without limit; "a single operation can retrieve up to 16 MB of data"',
        {"test_batch_get_stops_at_16_mb": ""},
    ),
    *_each(
        "ministack",
        "leaves the item that reaches 1 MB to the next page, and ends the one before at any size; measured at the"
        " service by the authors of dynalite, it belongs to the page",
        {
            "test_a_page_ends_after_one_megabyte": "",
            "test_a_limit_may_end_a_page_before_one_megabyte_does": "",
            "test_a_page_of_an_index_is_one_megabyte_of_the_index": "",
            "test_a_projection_does_not_lengthen_a_page": "",
            "test_the_item_that_reaches_one_megabyte_is_the_last": "1 MB (and|but) a byte",
            "test_a_page_of_several_keys_ends_after_one_megabyte": "",
        },
    ),
    *_each(
        "ministack",
        'does not fetch from the table; "If you query or scan a local secondary index, you can request attributes'
        ' that are not projected in to the index. DynamoDB automatically fetches those attributes from the table"',
        {
            "test_a_local_index_fetches_what_it_lacks_from_the_table": "",
            "test_a_local_index_fetches_whole_items": "",
            "test_a_global_index_has_no_whole_items": "",
            "test_pages_hold_whole_items": "request_2",
        },
    ),
    *_each(
        "ministack",
        "filters the items of the table, not the entries of the index",
        {"test_a_filter_sees_what_the_index_carries": ""},
    ),
    *_each(
        "ministack",
        "measures no keys of indexes; their limits are those of the keys of tables",
        {
            "test_bad_index_keys_are_refused": "2049 bytes",
            "test_a_key_must_fit_every_index_it_is_a_key_of": "",
            "test_values_that_no_key_can_have": "2048 bytes|1024 bytes",
        },
    ),
    *_each(
        "ministack",
        "takes filters on attributes of a key after the first; measured by Alternator's tests, the service does not",
        {"test_rejected_queries_of_several_keys": "filter on a later"},
    ),
    *_each(
        "ministack",
        "creates an item that was not there from an update that only takes away; measured, the service does not",
        {
            "test_an_update_that_only_takes_away_creates_nothing": "",
            "test_updates_of_an_item_that_is_not_there": "-(Discard|Remove)",
            "test_what_changes_nothing_is_no_change": "",
        },
    ),
    *_each(
        "ministack",
        'compares the text of numbers in keys and sets, so that 1.0 is not 1; "Numbers can be positive, negative, or'
        ' zero … Leading and trailing zeroes are trimmed"',
        {
            "test_keys_of_every_type": "exponent|smallest",
            "test_numbers_order_as_numbers": "",
            "test_conditions": re.escape("Contains(numbers, {'N': '2.50'})"),
            "test_updates": r"Add\(ids|Discard\(ids",
        },
    ),
    *_each(
        "ministack",
        'adds with 28 digits; "up to 38 digits of precision"',
        {
            "test_sums_are_exact": "38 digits|carry",
            "test_sums_that_cannot_be_stored": "",
            "test_rejected_updates": re.escape("{'N': '1e50'}"),
        },
    ),
    *_each(
        "ministack",
        "compares two attributes that are not there as equal; measured, a missing attribute equals nothing",
        {"test_conditions": r"missing (=|<>) absent|In\(missing"},
    ),
    *_each(
        "ministack",
        "has no begins_with between other operands than a path and a value of the path's type, and finds no bytes"
        " in binary",
        {"test_conditions": r"BeginsWith\(one|BeginsWith\(text, {'B'|BeginsWith\({'S'|Contains\(raw,"},
    ),
    *_each(
        "ministack",
        "looks at the operands of a condition only when it evaluates it, or not at all",
        {
            "test_rejected_conditions": r"BeginsWith|Between|Contains|HasType|In\(|BOOL|= a|SS",
            "test_what_is_invalid_in_itself_is_no_cancellation": "operand",
        },
    ),
    *_each(
        "ministack",
        "does not look for paths that overlap or conflict",
        {
            "test_rejected_projections": re.escape("a.b, a[0]"),
            "test_rejected_updates": r"Remove\(a\)$|Remove\(a\[1\]\)$",
        },
    ),
    *_each(
        "ministack",
        "changes what an operand or a path of the wrong type leads to, instead of refusing it",
        {
            "test_rejected_updates": (
                r"Remove\(nowhere|Remove\(text|\(\+, text|'S': 'x'}, {|ListAppend|Set\((map\[0\]|list\.a|text\.a)"
            ),
        },
    ),
    *_each(
        "ministack",
        "takes list elements out one after the other; in the guide, REMOVE MyNumbers[1], MyNumbers[3] leaves"
        ' "Zero", "Two", "Four" of five',
        {"test_updates": r"Remove\(list\[0\]\), Remove\(list\[2\]\)"},
    ),
    *_each(
        "ministack",
        'appends in the order of actions; "If you add multiple elements in a single SET operation, the elements are'
        ' sorted in order by element number"',
        {"test_updates": r"Set\(list\[9\]"},
    ),
    *_each(
        "ministack",
        "takes filters on keys, start keys that fit no key schema, and projections of what an index lacks",
        {
            "test_rejected_queries": "filter on a key|start behind|start with more|type of the start|attributes that",
        },
    ),
    *_each(
        "ministack",
        "lets bad base64 pass, and fails inside over a list in the place of a map",
        {"test_bad_values_are_refused_and_nothing_is_written": "no base64|list for a map"},
    ),
    *_each(
        "ministack",
        "checks fewer keys in transactions than elsewhere",
        {
            "test_what_an_item_or_a_table_does_not_allow_is_a_reason": "no key|key to delete",
            "test_what_is_invalid_in_itself_is_no_cancellation": "update of a key",
        },
    ),
    *_each(
        "ministack",
        'takes an empty token for none; "Minimum length of 1. Maximum length of 36."',
        {"test_a_token_has_1_to_36_characters": "-0"},
    ),
)

# --- dynalite ----------------------------------------------------------------------------------

_WITH_INDEX_UNITS = r"new|appears?|disappear|deleted|changes?$|grows$|projected by all|shrinks|grows, projected"

_DYNALITE: tuple[Difference, ...] = (
    *_each(
        "dynalite",
        "counts nothing for indexes when items are written",
        {
            "test_units_of_index_writes": _WITH_INDEX_UNITS,
            "test_units_of_index_updates": _WITH_INDEX_UNITS.replace("|deleted", ""),
            "test_a_batch_adds_up": "",
        },
    ),
    *_each(
        "dynalite",
        "counts nothing for reading nothing, and strongly consistent scans as eventually consistent ones",
        {
            "test_a_page_that_is_exactly_full_has_a_last_key": "",
            "test_a_query_adds_up_sizes_before_it_rounds": "-0-",
            "test_units_of_a_scan": "strongly|local index",
        },
    ),
    *_each(
        "dynalite",
        "does not know ReturnValuesOnConditionCheckFailure",
        {"test_a_failed_condition_tells_the_stored_item": "", "test_writes_see_and_record_whole_items": ""},
    ),
    *_each(
        "dynalite",
        "has no streams, and tables have none",
        {"test_a_name_is_taken_once": "", "test_a_stream_is_described": "", "test_dropping_a_table": ""},
    ),
    *_each(
        "dynalite",
        "has no time to live, no recovery and no protection against deletion",
        {
            "test_the_attribute_of_expiry_is_described": "",
            "test_a_table_with_recovery_and_tags_can_be_created": "",
            "test_a_protected_table_is_not_dropped": "",
        },
    ),
    *_each(
        "dynalite",
        'does not fetch from the table; "If you query or scan a local secondary index, you can request attributes'
        ' that are not projected in to the index. DynamoDB automatically fetches those attributes from the table"',
        {"test_a_local_index_fetches_what_it_lacks_from_the_table": "", "test_pages_hold_whole_items": "request_2"},
    ),
    *_each(
        "dynalite",
        "counts the items that it fetches from the table together; the service rounds up each",
        {"test_a_local_index_fetches_whole_items": ""},
    ),
    *_each(
        "dynalite",
        'ends BatchGetItem at about 1 MB; "a single operation can retrieve up to 16 MB of data"',
        {"test_batch_get_stops_at_16_mb": ""},
    ),
    *_each(
        "dynalite",
        'measures text in UTF-16; "Strings are Unicode with UTF-8 binary encoding"',
        {
            "test_bad_keys_are_refused": "characters",
            "test_characters_count_as_bytes": "",
            "test_conditions": "uffff",
        },
    ),
    *_each(
        "dynalite",
        "counts some bytes for each item, and for each 3 KB of it, towards the 1 MB of a page",
        {
            "test_the_item_that_reaches_one_megabyte_is_the_last": "1 MB but a byte",
            "test_less_than_one_megabyte_is_one_page": "",
        },
    ),
    *_each(
        "dynalite",
        "checks no lengths of keys of indexes, and no empty ones",
        {
            "test_bad_index_keys_are_refused": "2049 bytes|empty",
            "test_a_key_must_fit_every_index_it_is_a_key_of": "",
            "test_rejected_queries": "empty partition",
        },
    ),
    *_each(
        "dynalite",
        'nests without limit; "supports nested attributes up to 32 levels deep"',
        {"test_bad_values_are_refused_and_nothing_is_written": "33 levels"},
    ),
    *_each(
        "dynalite",
        "creates an item that was not there from an update that only takes away; measured, the service does not",
        {
            "test_an_update_that_only_takes_away_creates_nothing": "",
            "test_updates_of_an_item_that_is_not_there": "-(Discard|Remove)",
        },
    ),
    *_each(
        "dynalite",
        "takes list elements out one after the other; in the guide, REMOVE MyNumbers[1], MyNumbers[3] leaves"
        ' "Zero", "Two", "Four" of five',
        {"test_updates": r"Remove\(list\[0\]\), Remove\(list\[2\]\)"},
    ),
    *_each(
        "dynalite",
        "stores sums that are too large or too long",
        {"test_sums_that_cannot_be_stored": "", "test_rejected_updates": "9e125|1e50"},
    ),
    *_each(
        "dynalite",
        "does not take a plus sign before a number, which the service does (measured)",
        {
            "test_values_have_one_form": "plus sign",
            "test_numbers_are_equal_however_they_are_spelled": re.escape("+1.5"),
        },
    ),
    *_each(
        "dynalite",
        "compares two attributes that are not there as equal; measured, a missing attribute equals nothing",
        {"test_conditions": "missing (=|<>) absent"},
    ),
    *_each(
        "dynalite",
        "compares maps by their text, and has no size of empty text",
        {"test_conditions": r"map = |Contains\(list, {'M'|Size\(empty\)"},
    ),
    *_each(
        "dynalite",
        "looks at the operands of a condition only when it evaluates it, or not at all",
        {"test_rejected_conditions": r"Between\(a, {'L'|In\(a, {|< {'BOOL'"},
    ),
    *_each(
        "dynalite",
        "takes consistent scans of global indexes, start keys without a sort key, and projections of what an index"
        " lacks",
        {"test_rejected_queries": "consistent scan|start behind|attributes that"},
    ),
    *_each(
        "dynalite",
        'creates no index whose keys have several attributes; "you can create a partition key from up to four'
        ' attributes and a sort key from up to four attributes"',
        dict.fromkeys(
            (
                "test_the_keys_are_described_in_their_order",
                "test_the_longest_keys",
                "test_a_partition_of_several_keys_in_order",
                "test_conditions_on_the_first_sort_keys",
                "test_a_last_key_has_all_keys_of_the_index_and_of_the_table",
                "test_binary_and_numbers_in_one_sort_key",
                "test_a_partition_of_several_attributes_without_a_sort_key",
                "test_a_filter_and_a_count_of_several_keys",
                "test_rejected_queries_of_several_keys",
                "test_segments_of_an_index_are_together_everything",
                "test_an_item_leaves_an_index_with_any_of_its_keys",
                "test_an_item_moves_if_any_of_its_keys_changes",
                "test_batches_and_deletes_change_an_index_of_several_keys",
                "test_values_that_no_key_can_have",
                "test_a_page_of_several_keys_ends_after_one_megabyte",
            ),
            "",
        ),
    ),
)

DIFFERENCES = (*_MINISTACK, *_DYNALITE)

# --- words -------------------------------------------------------------------------------------

_NO_FUNCTION = re.escape("Invalid UpdateExpression: The function is not allowed in an update expression")

WORDS: dict[str, dict[str, str]] = {
    "ministack": {
        "Size of hashkey has exceeded the maximum size limit of2048 bytes": (
            "Aggregated size of all hash keys has exceeded the size limit of 2048 bytes"
        ),
        "Supplied AttributeValue is empty, must contain exactly": "Supplied AttributeValue has more than one datatypes",
        r"Input collection \[a, a\] contains duplicates": r'Input collection \["a", "a"\] contains duplicates',
        r"Input collection \[YQ==, YQ==\]of type BS": r'Input collection \["YQ==","YQ=="\]of type BS',
        "Query condition missed key schema element: SK": "Query condition missed key schema element: x",
        "HASH key attributes region must have equality": "Query condition missed key schema element: region",
        "HASH key attributes tournament, region must": "Query condition missed key schema element: tournament",
        "The provided starting key is outside query boundaries based on provided conditions": (
            "The provided starting key does not match the range key predicate"
        ),
        _NO_FUNCTION: "The provided expression refers to an attribute that does not exist in the item",
    },
    "dynalite": {
        _NO_FUNCTION: "Invalid function name; function: size",
        r"The number of query conditions \(2\) exceeds the number of key attributes defined in the schema \(1\)": (
            "Query key condition not supported"
        ),
    },
}
"""For each server, what it says (a regular expression) in the place of what the service says."""


def said_by(store: Store, words: str) -> str:
    """A message of the service, as the server behind a store says it."""
    return WORDS.get(store.server, {}).get(words, words) if isinstance(store, OwnTables) else words


# --- applying them -----------------------------------------------------------------------------


def expect_differences(items: Iterable[pytest.Item]) -> set[Difference]:
    """Mark the tests that are known to fail on their server; answers the differences that no test is about."""
    unused = set(DIFFERENCES)
    failures = (AssertionError, AdjoinError, pytest.fail.Exception)
    for item in items:
        for difference in _found(item) if isinstance(item, pytest.Function) else ():
            unused.discard(difference)
            item.add_marker(pytest.mark.xfail(reason=difference.reason, raises=failures, strict=True))
    return unused


def _found(item: pytest.Function) -> Iterator[Difference]:
    server = item.callspec.params.get("store") if hasattr(item, "callspec") else None
    if isinstance(server, str):
        yield from (difference for difference in DIFFERENCES if difference.is_about(server, item))

"""What DynamoDB refuses in an expression alone: reserved words, misplaced functions, too many operators.

The checks follow the order of the text, and come before any placeholder is replaced, so a request with two faults
reports the same one as on DynamoDB. Their result is the same for every request with that text.

The reserved words, which cannot name an attribute in upper or lower case, are those of AWS's developer guide.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from adjoin.server.grammar.parser import (
    DocumentPath,
    ExpressionFault,
    Literal,
    ParsedCall,
    ParsedClause,
    ParsedComparison,
    ParsedConjunction,
    ParsedDisjunction,
    ParsedLogic,
    ParsedMembership,
    ParsedNegation,
    ParsedRange,
    ParsedSum,
)
from adjoin.units import MAX_LIST_INDEX, MAX_NESTING, MAX_OPERATORS


class FunctionContext(Enum):
    """The place of a function in an expression, which decides whether the function is allowed."""

    CONDITION = "a condition"
    OPERAND = "an operand of a condition"
    AMOUNT = "all that SET gives an attribute"
    TERM = "a part of what SET gives an attribute"


_UPDATES = (FunctionContext.AMOUNT, FunctionContext.TERM)

ARITY = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
    "size": 1,
    "if_not_exists": 2,
    "list_append": 2,
}

_ALLOWED: dict[str, tuple[FunctionContext, ...]] = {
    **dict.fromkeys(ARITY, (FunctionContext.CONDITION,)),
    "size": (FunctionContext.OPERAND,),
    "if_not_exists": _UPDATES,
    "list_append": (FunctionContext.AMOUNT,),
}


def check_condition(root: ParsedLogic) -> ParsedLogic:
    _check_count(_walk(root, FunctionContext.CONDITION))
    return root


def check_projection(places: tuple[DocumentPath, ...]) -> tuple[DocumentPath, ...]:
    for place in places:
        _check_place(place)
    return places


def check_update(clauses: tuple[ParsedClause, ...]) -> tuple[ParsedClause, ...]:
    """Checks the clauses by keyword, in the order in which the keywords first appear."""
    operators = 0
    for keyword in dict.fromkeys(clause.keyword for clause in clauses):
        same = [clause for clause in clauses if clause.keyword == keyword]
        for step in (step for clause in same for step in clause.steps):
            _check_place(step.target)
            operators += _walk(step.value, FunctionContext.AMOUNT)
        if len(same) > 1:
            raise ExpressionFault(f'The "{keyword}" section can only be used once in an update expression;')
    _check_count(operators)
    return clauses


def _check_count(operators: int) -> None:
    # DynamoDB stops counting at the first operator that is too many.
    if operators > MAX_OPERATORS:
        raise ExpressionFault(f"The expression contains too many operators; operator count: {MAX_OPERATORS + 1}")


def _walk(root: Any, context: FunctionContext) -> int:
    """Checks everything in a part, from left to right; returns the number of its operators and functions."""
    operators = 0
    pending = [(root, context, 0)]
    while pending:
        node, where, depth = pending.pop()
        parts: Sequence[Any]
        match node:
            case DocumentPath():
                _check_place(node)
                continue
            case Literal() | None:
                continue
            case ParsedConjunction(parts) | ParsedDisjunction(parts):
                operators += len(parts) - 1
            case ParsedNegation(part):
                operators += 1
                parts = (part,)
            case _:
                operators += 1
                parts = _operands(node)
                if isinstance(node, ParsedCall):
                    depth += 1
                    _check_call(node, where, depth)
                where = FunctionContext.TERM if where in _UPDATES else FunctionContext.OPERAND
        pending.extend((part, where, depth) for part in reversed(parts))
    return operators


def _operands(node: ParsedCall | ParsedComparison | ParsedRange | ParsedMembership | ParsedSum) -> Sequence[Any]:
    match node:
        case ParsedCall():
            return node.arguments
        case ParsedRange():
            return node.operand, node.low, node.high
        case ParsedMembership():
            return node.operand, *node.options
        case ParsedComparison() | ParsedSum():
            return node.left, node.right


def _check_place(place: DocumentPath) -> None:
    for step in place.steps:
        if isinstance(step, int):
            if step > MAX_LIST_INDEX:
                raise ExpressionFault(f"List index is not within the allowable range; index: [{step}]")
        elif _is_reserved(step):
            raise ExpressionFault(f"Attribute name is a reserved keyword; reserved keyword: {step}")


def _check_call(call: ParsedCall, where: FunctionContext, depth: int) -> None:
    name = call.function
    if name not in _ALLOWED:
        raise ExpressionFault(f"Invalid function name; function: {name}")
    allowed = _ALLOWED[name]
    if where in allowed:
        # A size of a size is wrong at any depth. It is refused here, before recursive code could exhaust the stack.
        if name == "size" and depth > MAX_NESTING:
            raise ExpressionFault(
                "Incorrect operand type for operator or function; operator or function: size, operand type: N"
            )
        return
    updates = where in _UPDATES
    if updates is (allowed[0] in _UPDATES):
        raise ExpressionFault(f"The function is not allowed to be used this way in an expression; function: {name}")
    kind = "an update" if updates else "a condition"
    raise ExpressionFault(f"The function is not allowed in {kind} expression; function: {name}")


# --- reserved words ----------------------------------------------------------------------------


_WORDS = """
ABORT ABSOLUTE ACTION ADD AFTER AGENT AGGREGATE ALL ALLOCATE ALTER ANALYZE AND ANY ARCHIVE ARE ARRAY AS ASC
ASCII ASENSITIVE ASSERTION ASYMMETRIC AT ATOMIC ATTACH ATTRIBUTE AUTH AUTHORIZATION AUTHORIZE AUTO AVG BACK
BACKUP BASE BATCH BEFORE BEGIN BETWEEN BIGINT BINARY BIT BLOB BLOCK BOOLEAN BOTH BREADTH BUCKET BULK BY BYTE
CALL CALLED CALLING CAPACITY CASCADE CASCADED CASE CAST CATALOG CHAR CHARACTER CHECK CLASS CLOB CLOSE
CLUSTER CLUSTERED CLUSTERING CLUSTERS COALESCE COLLATE COLLATION COLLECTION COLUMN COLUMNS COMBINE COMMENT
COMMIT COMPACT COMPILE COMPRESS CONDITION CONFLICT CONNECT CONNECTION CONSISTENCY CONSISTENT CONSTRAINT
CONSTRAINTS CONSTRUCTOR CONSUMED CONTINUE CONVERT COPY CORRESPONDING COUNT COUNTER CREATE CROSS CUBE CURRENT
CURSOR CYCLE DATA DATABASE DATE DATETIME DAY DEALLOCATE DEC DECIMAL DECLARE DEFAULT DEFERRABLE DEFERRED
DEFINE DEFINED DEFINITION DELETE DELIMITED DEPTH DEREF DESC DESCRIBE DESCRIPTOR DETACH DETERMINISTIC
DIAGNOSTICS DIRECTORIES DISABLE DISCONNECT DISTINCT DISTRIBUTE DO DOMAIN DOUBLE DROP DUMP DURATION DYNAMIC
EACH ELEMENT ELSE ELSEIF EMPTY ENABLE END EQUAL EQUALS ERROR ESCAPE ESCAPED EVAL EVALUATE EXCEEDED EXCEPT
EXCEPTION EXCEPTIONS EXCLUSIVE EXEC EXECUTE EXISTS EXIT EXPLAIN EXPLODE EXPORT EXPRESSION EXTENDED EXTERNAL
EXTRACT FAIL FALSE FAMILY FETCH FIELDS FILE FILTER FILTERING FINAL FINISH FIRST FIXED FLATTERN FLOAT FOR
FORCE FOREIGN FORMAT FORWARD FOUND FREE FROM FULL FUNCTION FUNCTIONS GENERAL GENERATE GET GLOB GLOBAL GO
GOTO GRANT GREATER GROUP GROUPING HANDLER HASH HAVE HAVING HEAP HIDDEN HOLD HOUR IDENTIFIED IDENTITY IF
IGNORE IMMEDIATE IMPORT IN INCLUDING INCLUSIVE INCREMENT INCREMENTAL INDEX INDEXED INDEXES INDICATOR
INFINITE INITIALLY INLINE INNER INNTER INOUT INPUT INSENSITIVE INSERT INSTEAD INT INTEGER INTERSECT INTERVAL
INTO INVALIDATE IS ISOLATION ITEM ITEMS ITERATE JOIN KEY KEYS LAG LANGUAGE LARGE LAST LATERAL LEAD LEADING
LEAVE LEFT LENGTH LESS LEVEL LIKE LIMIT LIMITED LINES LIST LOAD LOCAL LOCALTIME LOCALTIMESTAMP LOCATION
LOCATOR LOCK LOCKS LOG LOGED LONG LOOP LOWER MAP MATCH MATERIALIZED MAX MAXLEN MEMBER MERGE METHOD METRICS
MIN MINUS MINUTE MISSING MOD MODE MODIFIES MODIFY MODULE MONTH MULTI MULTISET NAME NAMES NATIONAL NATURAL
NCHAR NCLOB NEW NEXT NO NONE NOT NULL NULLIF NUMBER NUMERIC OBJECT OF OFFLINE OFFSET OLD ON ONLINE ONLY
OPAQUE OPEN OPERATOR OPTION OR ORDER ORDINALITY OTHER OTHERS OUT OUTER OUTPUT OVER OVERLAPS OVERRIDE OWNER
PAD PARALLEL PARAMETER PARAMETERS PARTIAL PARTITION PARTITIONED PARTITIONS PATH PERCENT PERCENTILE
PERMISSION PERMISSIONS PIPE PIPELINED PLAN POOL POSITION PRECISION PREPARE PRESERVE PRIMARY PRIOR PRIVATE
PRIVILEGES PROCEDURE PROCESSED PROJECT PROJECTION PROPERTY PROVISIONING PUBLIC PUT QUERY QUIT QUORUM RAISE
RANDOM RANGE RANK RAW READ READS REAL REBUILD RECORD RECURSIVE REDUCE REF REFERENCE REFERENCES REFERENCING
REGEXP REGION REINDEX RELATIVE RELEASE REMAINDER RENAME REPEAT REPLACE REQUEST RESET RESIGNAL RESOURCE
RESPONSE RESTORE RESTRICT RESULT RETURN RETURNING RETURNS REVERSE REVOKE RIGHT ROLE ROLES ROLLBACK ROLLUP
ROUTINE ROW ROWS RULE RULES SAMPLE SATISFIES SAVE SAVEPOINT SCAN SCHEMA SCOPE SCROLL SEARCH SECOND SECTION
SEGMENT SEGMENTS SELECT SELF SEMI SENSITIVE SEPARATE SEQUENCE SERIALIZABLE SESSION SET SETS SHARD SHARE
SHARED SHORT SHOW SIGNAL SIMILAR SIZE SKEWED SMALLINT SNAPSHOT SOME SOURCE SPACE SPACES SPARSE SPECIFIC
SPECIFICTYPE SPLIT SQL SQLCODE SQLERROR SQLEXCEPTION SQLSTATE SQLWARNING START STATE STATIC STATUS STORAGE
STORE STORED STREAM STRING STRUCT STYLE SUB SUBMULTISET SUBPARTITION SUBSTRING SUBTYPE SUM SUPER SYMMETRIC
SYNONYM SYSTEM TABLE TABLESAMPLE TEMP TEMPORARY TERMINATED TEXT THAN THEN THROUGHPUT TIME TIMESTAMP TIMEZONE
TINYINT TO TOKEN TOTAL TOUCH TRAILING TRANSACTION TRANSFORM TRANSLATE TRANSLATION TREAT TRIGGER TRIM TRUE
TRUNCATE TTL TUPLE TYPE UNDER UNDO UNION UNIQUE UNIT UNKNOWN UNLOGGED UNNEST UNPROCESSED UNSIGNED UNTIL
UPDATE UPPER URL USAGE USE USER USERS USING UUID VACUUM VALUE VALUED VALUES VARCHAR VARIABLE VARIANCE VARINT
VARYING VIEW VIEWS VIRTUAL VOID WAIT WHEN WHENEVER WHERE WHILE WINDOW WITH WITHIN WITHOUT WORK WRAPPED WRITE
YEAR ZONE
"""

RESERVED = frozenset(_WORDS.split())


def _is_reserved(name: str) -> bool:
    return name.upper() in RESERVED

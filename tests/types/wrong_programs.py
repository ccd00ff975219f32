"""Programs with one wrong line each, and what the type checkers say about it.

A program begins after `BEGINNING`; its wrong line ends in `# wrong`. Of each checker, the rule and a part of its
message are given, or None if it cannot see what is wrong: no type says that a keyword is a field, so only mypy finds
it, with our plugin.
"""

from __future__ import annotations

from dataclasses import dataclass

BEGINNING = """\
from datetime import date
from decimal import Decimal

from adjoin import AsyncGraph, Edge, Graph, Node, Predicate, field
from examples.library_service import Author, Book, Borrowed, Branch, Follows, Member, Note, Stocks, Wrote

used = (date, Decimal, AsyncGraph, Edge, Graph, Node, Predicate, field)
classes = (Author, Book, Borrowed, Branch, Follows, Member, Note, Stocks, Wrote)
"""


@dataclass(frozen=True)
class Wrong:
    """One program, and the diagnosis of each checker: "rule: part of the message"."""

    what: str
    program: str
    pyright: str | None
    mypy: str | None


_ARGUMENT = "reportArgumentType: "
_KEYWORD = "call-arg: Unexpected keyword argument "

WRONG = (
    Wrong(
        "a field of a far node",
        """
def names(g: Graph) -> list[str]:
    return [author.nmae for _, author in g.into("b1", Wrote).nodes()]  # wrong
""",
        'reportAttributeAccessIssue: Cannot access attribute "nmae" for class "Author"',
        'attr-defined: "Author" has no attribute "nmae"',
    ),
    Wrong(
        "a field of an edge in a pair",
        """
def roles(g: Graph) -> list[str]:
    return [wrote.roel for wrote, _ in g.out("a1", Wrote).nodes()]  # wrong
""",
        'reportAttributeAccessIssue: Cannot access attribute "roel" for class "Wrote"',
        'attr-defined: "Wrote" has no attribute "roel"',
    ),
    Wrong(
        "the far nodes of the other direction",
        """
def titles(g: Graph) -> list[str]:
    return [book.title for _, book in g.into("b1", Wrote).nodes().page()]  # wrong
""",
        'reportAttributeAccessIssue: Cannot access attribute "title" for class "Author"',
        'attr-defined: "Author" has no attribute "title"',
    ),
    Wrong(
        "a far node of an asynchronous query",
        """
async def names(g: AsyncGraph) -> list[str]:
    return [author.nmae async for _, author in g.into("b1", Wrote).nodes()]  # wrong
""",
        'reportAttributeAccessIssue: Cannot access attribute "nmae" for class "Author"',
        'attr-defined: "Author" has no attribute "nmae"',
    ),
    Wrong(
        "a first pair that may be missing",
        """
def author(g: Graph) -> Author:
    return g.into("b1", Wrote).nodes().first()[1]  # wrong
""",
        'reportOptionalSubscript: Object of type "None" is not subscriptable',
        'index: Value of type "tuple[Wrote, Author] | None" is not indexable',
    ),
    Wrong(
        "a far node of an edge that was found",
        """
def titles(g: Graph) -> list[str]:
    found = g.find(Borrowed, field(Borrowed.since) > date(2024, 1, 1))
    return [member.title for _, member in found.nodes()]  # wrong
""",
        'reportAttributeAccessIssue: Cannot access attribute "title" for class "Member"',
        'attr-defined: "Member" has no attribute "title"',
    ),
    Wrong(
        "a node that a walk reaches",
        """
def titles(g: Graph) -> list[str]:
    return [node.title for node in g.walk(Member.ref("m1")).out(Borrowed).into(Wrote)]  # wrong
""",
        'reportAttributeAccessIssue: Cannot access attribute "title" for class "Author"',
        'attr-defined: "Author" has no attribute "title"',
    ),
    Wrong(
        "the node of a collection, which may be missing",
        """
def title(g: Graph) -> str:
    return g.collection(Book.ref("b1")).node.title  # wrong
""",
        'reportOptionalMemberAccess: "title" is not a known attribute of "None"',
        'union-attr: Item "None" of "Book | None" has no attribute "title"',
    ),
    Wrong(
        "a far node of a collection",
        """
def names(g: Graph) -> list[str]:
    pairs = g.collection(Book.ref("b1"), direction="into").nodes()
    return [author.nmae for _, author in pairs.of(Wrote)]  # wrong
""",
        'reportAttributeAccessIssue: Cannot access attribute "nmae" for class "Author"',
        'attr-defined: "Author" has no attribute "nmae"',
    ),
    Wrong(
        "the new value of a change, whose class is not known",
        """
def titles(g: Graph) -> list[str]:
    return [each.new.title for each in g.changes() if isinstance(each.new, Book | Node)]  # wrong
""",
        'reportAttributeAccessIssue: Cannot access attribute "title" for class "Node"',
        'attr-defined: "Node" has no attribute "title"',
    ),
    Wrong(
        "the end of an edge as what it is not",
        """
def number(loan: Borrowed) -> int:
    return loan.target  # wrong
""",
        'reportReturnType: Type "str" is not assignable to return type "int"',
        'return-value: Incompatible return value type (got "str", expected "int")',
    ),
    Wrong(
        "a ref of another class in out",
        """
def loans(g: Graph) -> int:
    return g.out(Book.ref("b1"), Borrowed).count()  # wrong
""",
        _ARGUMENT + '"Book" is not assignable to "Member"',
        'arg-type: Argument 1 to "out" of "Graph" has incompatible type "Ref[Book]"; expected "Member | Ref[Member]',
    ),
    Wrong(
        "a node of another class in into",
        """
def loans(g: Graph, member: Member) -> int:
    return g.into(member, Borrowed).count()  # wrong
""",
        _ARGUMENT + '"Member" is not assignable to "Book"',
        'arg-type: Argument 1 to "into" of "Graph" has incompatible type "Member"; expected "Book | Ref[Book]',
    ),
    Wrong(
        "a source that is no id",
        """
def loans(g: Graph) -> int:
    return g.out(1.5, Borrowed).count()  # wrong
""",
        _ARGUMENT + 'Argument of type "float" cannot be assigned to parameter "x"',
        'arg-type: Argument 1 to "out" of "Graph" has incompatible type "float"',
    ),
    Wrong(
        "a node that may be missing as a source",
        """
def loans(g: Graph) -> int:
    return g.out(g.get(Member, "m1"), Borrowed).count()  # wrong
""",
        _ARGUMENT + '"None" is not assignable to "Member"',
        'arg-type: Argument 1 to "out" of "Graph" has incompatible type "Member | None"',
    ),
    Wrong(
        "a class of nodes in out",
        """
def notes(g: Graph) -> int:
    return g.out("b1", Note).count()  # wrong
""",
        _ARGUMENT + 'Argument of type "type[Note]" cannot be assigned to parameter "model"',
        'arg-type: Argument 2 to "out" of "Graph" has incompatible type "type[Note]"',
    ),
    Wrong(
        "the parent of other children",
        """
def notes(g: Graph) -> int:
    return g.children(Member.ref("m1"), Note).count()  # wrong
""",
        _ARGUMENT + '"Member" is not assignable to "Book"',
        'arg-type: Argument 1 to "children" of "Graph" has incompatible type "Ref[Member]"; expected "Book | Ref[Book]',
    ),
    Wrong(
        "a target of another class in connect",
        """
def follow(g: Graph, book: Book) -> None:
    g.connect(Follows, "m1", book, since=date(2024, 1, 1))  # wrong
""",
        _ARGUMENT + 'Argument of type "Book" cannot be assigned to parameter "target"',
        'arg-type: Argument 3 to "connect" of "Graph" has incompatible type "Book"; expected "Member | Ref[Member]',
    ),
    Wrong(
        "the target of a new edge",
        """
def made() -> Wrote:
    return Wrote(source="a1", target=Author.ref("a2"))  # wrong
""",
        _ARGUMENT + 'Argument of type "Ref[Author]" cannot be assigned to parameter "target"',
        'arg-type: Argument "target" to "Wrote" has incompatible type "Ref[Author]"',
    ),
    Wrong(
        "a source that is no id, in a new edge",
        """
def made() -> Wrote:
    return Wrote(source=None, target="b1")  # wrong
""",
        _ARGUMENT + 'Argument of type "None" cannot be assigned to parameter "source"',
        'arg-type: Argument "source" to "Wrote" has incompatible type "None"',
    ),
    Wrong(
        "the id of a node to delete",
        """
def forget(g: Graph) -> bool:
    return g.delete(Member, ["m1"])  # wrong
""",
        _ARGUMENT + 'Argument of type "list[str]" cannot be assigned to parameter "id"',
        'arg-type: Argument 2 to "delete" of "Graph" has incompatible type "list[str]"',
    ),
    Wrong(
        "one of several ids",
        """
def some(g: Graph) -> list[Member | None]:
    return g.get_many(Member, ["m1", 1.5])  # wrong
""",
        _ARGUMENT + '"float" is not assignable to "str"',
        'list-item: List item 1 has incompatible type "float"',
    ),
    Wrong(
        "the last of what is read together",
        """
def note(g: Graph) -> Book | None:
    return g.get_together(Author.ref("a1"), Book.ref("b1"), Member.ref("m1"))[2]  # wrong
""",
        'reportReturnType: Type "Member | None" is not assignable to return type "Book | None"',
        'return-value: Incompatible return value type (got "Member | None", expected "Book | None")',
    ),
    Wrong(
        "the name of a field in a condition",
        """
def members(g: Graph) -> int:
    return g.find(Member, field(Member.ctiy) == "Oslo").count()  # wrong
""",
        'reportAttributeAccessIssue: Cannot access attribute "ctiy" for class "type[Member]"',
        'attr-defined: "type[Member]" has no attribute "ctiy"',
    ),
    Wrong(
        "the name of a field in an order",
        """
def members(g: Graph) -> int:
    return g.find(Member, order=field(Member.ctiy)).count()  # wrong
""",
        'reportAttributeAccessIssue: Cannot access attribute "ctiy" for class "type[Member]"',
        'attr-defined: "type[Member]" has no attribute "ctiy"',
    ),
    Wrong(
        "a number compared with text",
        """
busy: Predicate = field(Member.loans) > "3"  # wrong
""",
        'reportOperatorIssue: Operator ">" not supported for types "FieldReference[int]"',
        'operator: Unsupported operand types for > ("FieldReference[int]" and "str")',
    ),
    Wrong(
        "text compared with a number",
        """
late: Predicate = field(Member.city) < 3  # wrong
""",
        'reportOperatorIssue: Operator "<" not supported for types "FieldReference[str]"',
        'operator: Unsupported operand types for < ("FieldReference[str]" and "int")',
    ),
    Wrong(
        "a number that equals text",
        """
none: Predicate = field(Member.loans) == "0"  # wrong
""",
        'reportAssignmentType: Type "bool" is not assignable to declared type "Predicate"',
        'assignment: Incompatible types in assignment (expression has type "bool"',
    ),
    Wrong(
        "a field without field()",
        """
def members(g: Graph) -> int:
    return g.find(Member, Member.city == "Oslo").count()  # wrong
""",
        _ARGUMENT + 'Argument of type "bool" cannot be assigned to parameter "predicate"',
        'arg-type: Argument 2 to "find" of "Graph" has incompatible type "bool"',
    ),
    Wrong(
        "the beginning of a number",
        """
begins: Predicate = field(Member.loans).begins_with("3")  # wrong
""",
        'reportAttributeAccessIssue: Cannot access attribute "begins_with" for class "FieldReference[int]"',
        'misc: Invalid self argument "FieldReference[int]" to attribute function "begins_with"',
    ),
    Wrong(
        "a bound of another type",
        """
loans: Predicate = field(Borrowed.due).between(date(2024, 1, 1), "2024-02-01")  # wrong
""",
        _ARGUMENT + '"Literal[\'2024-02-01\']" cannot be assigned to parameter "high" of type "date"',
        'arg-type: Argument 2 to "between" of "FieldReference" has incompatible type "str"',
    ),
    Wrong(
        "an element of another type",
        """
tagged: Predicate = field(Book.tags).contains(3)  # wrong
""",
        _ARGUMENT + 'Argument of type "Literal[3]" cannot be assigned to parameter "element" of type "str"',
        'arg-type: Argument 1 to "contains" of "FieldReference" has incompatible type "int"; expected "str"',
    ),
    Wrong(
        "an element of a number",
        """
some: Predicate = field(Member.loans).contains(3)  # wrong
""",
        'reportAttributeAccessIssue: Cannot access attribute "contains" for class "FieldReference[int]"',
        'misc: Invalid self argument "FieldReference[int]" to attribute function "contains"',
    ),
    Wrong(
        "a change that adds text to a number",
        """
def count(g: Graph) -> None:
    g.update(Member, "m1", field(Member.loans) + "1")  # wrong
""",
        'reportOperatorIssue: Operator "+" not supported for types "FieldReference[int]"',
        'operator: Unsupported operand types for + ("FieldReference[int]" and "str")',
    ),
    Wrong(
        "a change that sets another type",
        """
def rename(g: Graph) -> None:
    g.update(Member, "m1", field(Member.name).set(3))  # wrong
""",
        _ARGUMENT + 'Argument of type "Literal[3]" cannot be assigned to parameter "value" of type "str"',
        'arg-type: Argument 1 to "set" of "FieldReference" has incompatible type "int"',
    ),
    Wrong(
        "elements of another type in a set",
        """
def tag(g: Graph) -> None:
    g.update(Book, "b1", tags=field(Book.tags).add([3]))  # wrong
""",
        _ARGUMENT + '"Literal[3]" is not assignable to "str"',
        'list-item: List item 0 has incompatible type "int"; expected "str"',
    ),
    Wrong(
        "a field that is read alone",
        """
def names(g: Graph) -> None:
    g.get(Member, "m1", only=[field(Member.nmae)])  # wrong
""",
        'reportAttributeAccessIssue: Cannot access attribute "nmae" for class "type[Member]"',
        'attr-defined: "type[Member]" has no attribute "nmae"',
    ),
    Wrong(
        "a unique field",
        """
def member(g: Graph) -> Member | None:
    return g.get(Member, emial="ann@x")  # wrong
""",
        None,
        _KEYWORD + '"emial" for "get"',
    ),
    Wrong(
        "a field in update",
        """
def rename(g: Graph) -> Member:
    return g.update(Member, "m1", nmae="Jo")  # wrong
""",
        None,
        _KEYWORD + '"nmae" for "update"',
    ),
    Wrong(
        "a field in update of a ref, awaited",
        """
async def rename(g: AsyncGraph) -> Member:
    return await g.update(Member.ref("m1"), nmae="Jo")  # wrong
""",
        None,
        _KEYWORD + '"nmae" for "update"',
    ),
    Wrong(
        "a value in update",
        """
def rename(g: Graph) -> Member:
    return g.update(Member, "m1", name=3)  # wrong
""",
        None,
        'arg-type: Argument "name" to "update" of "Changes" has incompatible type "int"',
    ),
    Wrong(
        "a field in upsert",
        """
def book(g: Graph) -> Book:
    return g.upsert(Book, "b1", tilte="Dune", year=1965)  # wrong
""",
        None,
        _KEYWORD + '"tilte" for "upsert"',
    ),
    Wrong(
        "a field in connect",
        """
def follow(g: Graph) -> Follows:
    return g.connect(Follows, "m1", "m2", sinec=date(2024, 1, 1))  # wrong
""",
        None,
        _KEYWORD + '"sinec" for "connect"',
    ),
    Wrong(
        "a value in connect",
        """
def follow(g: Graph) -> Follows:
    return g.connect(Follows, "m1", "m2", since="2024-01-01")  # wrong
""",
        None,
        'arg-type: Argument "since" to "connect" of "Graph" has incompatible type "str"; expected "date"',
    ),
    Wrong(
        "a field that connect lacks",
        """
def lend(g: Graph) -> Borrowed:
    return g.connect(Borrowed, "m1", "b1", since=date(2024, 1, 1))  # wrong
""",
        None,
        'call-arg: Missing named argument "due" for "connect" of "Graph"',
    ),
    Wrong(
        "a field in a transaction",
        """
def lend(g: Graph) -> None:
    with g.transaction() as t:
        t.update(Member, "m1", laons=field(Member.loans) + 1)  # wrong
""",
        None,
        _KEYWORD + '"laons" for "update"',
    ),
    Wrong(
        "an end that is neither source nor target",
        """
def pairs(g: Graph) -> int:
    return g.find(Borrowed).nodes("middle").count()  # wrong
""",
        'reportCallIssue: No overloads for "nodes" match',
        'call-overload: No overload variant of "nodes" of "FindQuery" matches argument type "str"',
    ),
)

MISSPELT = (
    # The line of `examples.library_service` with a field, its name misspelt, and whether pyright sees that.
    ("return BookShown(book.id", "book.title", "book.tilte", True),
    ("member = Member(id=", "name=body", "nmae=body", True),
    ("found = g.get(Member, email=", "email=", "emial=", False),
    ("for each in g.find(Member", "Member.city", "Member.ctiy", True),
    ("g.update(Member, request", "name=", "nmae=", False),
    ("g.connect(Follows", "since=", "sinec=", False),
    ("g.upsert(Book", "title=", "tilte=", False),
    ("g.find(Book", "order=field(Book.title)", "order=field(Book.tilte)", True),
    ("authors = [author", "author.name", "author.nmae", True),
    ("branches = [branch", "Stocks.copies", "Stocks.copeis", True),
    ("notes = [each", "each.text", "each.txet", True),
    ("tags=field(Book.tags)", "tags=field", "tgas=field", False),
    ("g.connect(Wrote", "role=", "roel=", False),
    ("g.put(Note(", "text=", "txet=", True),
    ("rated = g.into(", "Borrowed.rating", "Borrowed.ratign", True),
    ("for loan, reader in rated", "loan.rating", "loan.ratign", True),
    ("t.connect(Stocks", "copies=", "copeis=", False),
    ("t.connect(Borrowed", "due=due", "deu=due", False),
    ("t.update(Member", "field(Member.loans) + 1", "field(Member.laons) + 1", True),
    ("loan, book in page", "loan.due", "loan.deu", True),
    ("loan = g.update(Borrowed", "rating=", "ratign=", False),
    ("each.new.title", "each.new.title", "each.new.tilte", True),
)

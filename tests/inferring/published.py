"""Tables of published designs, filled with made-up items as a program with boto3 would write them.

Each is after a public description, and none is one of the tables that the inference was written for:

- recurring payments, complaints: AWS, "Data modeling schemas in DynamoDB"
- a battle royale: AWS workshop "Modeling game player data with Amazon DynamoDB"
- a forum, movies: the sample tables of the DynamoDB Developer Guide
- users and orders: the usual first example of single-table design (for instance jusdb.com)
- fund positions: pravin.dev, "DynamoDB Single Table Design"
- sessions and events with colons, as ElectroDB and Redis users write keys
- tickets with hyphens and no separator before the id
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from boto3.dynamodb.types import TypeSerializer

from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition
from adjoin.values import Item

Table: TypeAlias = tuple[TableDefinition, list[Item]]

_serialize = TypeSerializer().serialize


def item(**values: Any) -> Item:
    return {name: _serialize(value) for name, value in values.items()}


def _key(name: str) -> KeyAttribute:
    return KeyAttribute(*name.split(":")) if ":" in name else KeyAttribute(name)  # type: ignore[arg-type]


def table(name: str, keys: str, **indexes: str) -> TableDefinition:
    """A definition from names: "PK SK", and for an index the same; "year:N" is a number."""
    partition, *sort = map(_key, keys.split())
    made = []
    for index, given in indexes.items():
        first, *second = map(_key, given.split())
        made.append(IndexDefinition(index, first, second[0] if second else None))
    return TableDefinition(name, partition, sort[0] if sort else None, tuple(made))


def _uuid(number: int) -> str:
    return str(uuid.UUID(int=number * 7919 + 2**100))


def recurring_payments() -> Table:
    items = []
    for account in range(40):
        for sku in range(account % 3 + 1):
            day = f"2023-0{sku + 1}-{account % 28 + 1:02}T11:00:00Z"
            items.append(
                item(
                    PK=f"ACC#{1000 + account}",
                    SK=f"SUB#{account}#SKU#{900 + sku}",
                    AccountID=str(1000 + account),
                    Email=f"user{account}@example.com",
                    PaymentDetails={"card": f"{account:04}", "default": True},
                    NextReminderDate=day,
                    NextPaymentDate=day,
                    PaymentAmount=Decimal("12.99") if sku else 20,
                    CreatedDate=f"2022-12-{sku + 1:02}",
                )
            )
            items.append(
                item(
                    PK=f"ACC#{1000 + account}",
                    SK=f"REC#{day}#SKU#{900 + sku}",
                    Email=f"user{account}@example.com",
                    SKU=str(900 + sku),
                    ProcessedAmount=Decimal("12.99"),
                    TTL=1_700_000_000 + account * 3600,
                )
            )
    return table("RecurringPayments", "PK SK", GSI1="NextReminderDate", GSI2="NextPaymentDate"), items


def complaints() -> Table:
    definition = table(
        "Complaints",
        "complaint_id comm_id",
        Customer_complaint_GSI="customer_id complaint_id",
        Escalations_GSI="escalated_to escalation_time",
        Agents_Comments_GSI="agentID comm_date",
    )
    items = []
    for number in range(50):
        values: dict[str, Any] = {
            "complaint_id": f"Complaint{number}",
            "comm_id": "metadata",
            "customer_id": f"custXYZ{number % 7}",
            "severity": ("P1", "P2", "P3")[number % 3],
            "current_state": ("waiting", "assigned", "resolved")[number % 3],
            "creation_time": f"2023-04-{number % 28 + 1:02}T12:30:08Z",
            "complaint_description": f"the parcel {number} is late",
        }
        if number % 4 == 0:
            values |= {
                "escalated_to": f"Agent{number % 3}",
                "escalation_time": f"2023-05-{number % 28 + 1:02}T12:30:08Z",
            }
        items.append(item(**values))
        items.extend(
            item(
                complaint_id=f"Complaint{number}",
                comm_id=f"comm-0{number % 9}-{at}",
                agentID=f"Agent{at}",
                comm_date=f"2023-04-{at + 1:02}T12:35:54Z",
                comm_text=f"we look at it ({at})",
            )
            for at in range(number % 3)
        )
    return definition, items


def battle_royale() -> Table:
    definition = table("BattleRoyale", "PK SK", OpenGamesIndex="map open_timestamp", InvertedIndex="SK PK")
    items = [
        item(
            PK=f"USER#player{number:03}",
            SK=f"#METADATA#player{number:03}",
            username=f"player{number:03}",
            name=f"Player {number}",
            birthdate=f"19{60 + number % 40}-07-{number % 28 + 1:02}",
            address=f"{number} Main Street",
            email=f"player{number:03}@example.com",
        )
        for number in range(60)
    ]
    for number in range(20):
        game: dict[str, Any] = {
            "PK": f"GAME#{_uuid(number)}",
            "SK": f"#METADATA#{_uuid(number)}",
            "game_id": _uuid(number),
            "map": ("Green Grasslands", "Juicy Jungle", "Dirty Desert")[number % 3],
            "create_time": f"2019-04-{number % 28 + 1:02}T00:07:42",
            "people": number,
            "creator": f"player{number:03}",
        }
        game |= {"open_timestamp": f"2019-04-{number % 28 + 1:02}T01:07:42"} if number % 2 else {}
        items.append(item(**game))
        items.extend(
            item(
                PK=f"GAME#{_uuid(number)}",
                SK=f"USER#player{(number * 3 + at) % 60:03}",
                game_id=_uuid(number),
                username=f"player{(number * 3 + at) % 60:03}",
                **({"place": at} if number % 2 == 0 else {}),
            )
            for at in range(5)
        )
    return definition, items


def forum() -> Table:
    definition = TableDefinition(
        "Thread",
        KeyAttribute("ForumName"),
        KeyAttribute("Subject"),
        (
            IndexDefinition(
                "LastPostIndex",
                KeyAttribute("ForumName"),
                KeyAttribute("LastPostedDateTime"),
                Projection("KEYS_ONLY"),
                local=True,
            ),
        ),
    )
    return definition, [
        item(
            ForumName=("Amazon S3", "Amazon DynamoDB", "AWS Lambda")[number % 3],
            Subject=f"How do I {('limit', 'copy', 'delete')[number % 3]} permissions {number}?",
            LastPostedDateTime=f"2015-09-{number % 28 + 1:02}T19:58:22.514Z",
            LastPostedBy=f"User {number % 5}",
            Tags={"s3", f"tag{number % 4}"},
            Views=number,
            Replies=number % 4,
            Answered=number % 2 == 0,
        )
        for number in range(80)
    ]


def movies() -> Table:
    return table("Movies", "year:N title"), [
        item(
            year=1990 + number % 30,
            title=f"Movie {number}",
            info={
                "directors": [f"Director {number % 9}"],
                "rating": Decimal(number % 100) / 10,
                "actors": ["A", "B"],
                "running_time_secs": 5400 + number,
            },
        )
        for number in range(100)
    ]


def users_and_orders() -> Table:
    definition = table("Shop", "PK SK", GSI1="GSI1PK GSI1SK")
    items = []
    for user in range(30):
        items.append(
            item(
                PK=f"USER#{user}",
                SK="PROFILE",
                name=f"Ann {user}",
                email=f"u{user}@example.com",
                created_at=f"2025-01-{user % 28 + 1:02}T10:00:00+00:00",
                GSI1PK=f"EMAIL#u{user}@example.com",
                GSI1SK=f"USER#{user}",
            )
        )
        for number in range(user % 4):
            order = f"2025-{user:03}{number}"
            status = ("pending", "shipped", "done")[number % 3]
            items.append(
                item(
                    PK=f"USER#{user}",
                    SK=f"ORDER#{order}",
                    amount=Decimal(number) + Decimal("9.50"),
                    status=status,
                    GSI1PK=f"STATUS#{status}",
                    GSI1SK=f"ORDER#{order}",
                )
            )
            items.extend(
                item(PK=f"ORDER#{order}", SK=f"ITEM#prod-{letter}", quantity=user + 1, price=Decimal("4.75"))
                for letter in "ABC"[: number + 1]
            )
    return definition, items


def fund_positions() -> Table:
    definition = table("Funds", "PK SK", GSI1="GSI1PK GSI1SK", GSI2="GSI2PK GSI2SK")
    items = []
    for number in range(40):
        position = f"FUND_{number % 4}|INVESTOR_{number}"
        for version in range(number % 3 + 1):
            is_latest = version == number % 3
            items.append(
                item(
                    PK=f"DOC#DOC{number:03}",
                    SK="LATEST" if is_latest else f"HIST#2024-01-{version + 1:02}T00:00:00Z",
                    entityType="DOCUMENT",
                    version=version,
                    status="final" if is_latest else "draft",
                )
            )
        items.append(
            item(
                PK=f"POS#{position}",
                SK=f"CALL#2024-03-{number % 28 + 1:02}",
                entityType="CAPITAL_CALL",
                amount=number * 1000,
                document=f"DOC{number:03}",
                GSI1PK=f"FUND#FUND_{number % 4}",
                GSI1SK=f"CALL#2024-03-{number % 28 + 1:02}",
                GSI2PK=f"DOC#DOC{number:03}",
                GSI2SK=f"POS#{position}",
            )
        )
    return definition, items


def colons() -> Table:
    items = []
    for number in range(30):
        items.append(item(pk=f"user:{number}", sk=f"user:{number}", type="user", id=str(number), plan="free"))
        items.append(
            item(
                pk=f"user:{number}",
                sk=f"session:{_uuid(number)}",
                type="session",
                id=_uuid(number),
                expires=1_700_000_000 + number,
                device=None,
            )
        )
        items.extend(
            item(
                pk=f"session:{_uuid(number)}",
                sk=f"event:2024-02-{at + 1:02}T10:00:0{at}.123Z",
                type="event",
                name="click",
                count=at,
            )
            for at in range(3)
        )
    return table("Sessions", "pk sk"), items


def hyphens() -> Table:
    items = []
    for number in range(40):
        items.append(item(id=f"project-{number}", name=f"Project {number}", owner=f"user-{number % 5}"))
        items.append(
            item(
                id=f"ticket-{number:05}",
                project=f"project-{number % 40}",
                title=f"Fix {number}",
                points=Decimal("0.5") * number,
                labels=["bug", "ui"],
            )
        )
    return table("Tickets", "id", by_project="project"), items


# --- designs that were added after the inference was finished ----------------------------------


def chat() -> Table:
    """Users and rooms of a chat: AWS, "Data modeling schemas in DynamoDB"."""
    rooms = ("Music", "Movie", "Art", "Food")
    items = [item(PK=f"Room:{room}", SK="meta", CreatedBy=f"User{room[0]}") for room in rooms]
    items += [
        item(
            PK=f"User:User{'ABCDEFGH'[number % 8]}",
            SK=f"2023-04-01T12:{number:02}:00.001Z",
            RoomID=rooms[number % 4],
            Comment=f"I like {rooms[number % 4]} {number}!",
            CreatedAt=f"2023-04-01T12:{number:02}:00.001Z",
        )
        for number in range(60)
    ]
    return table("Chat", "PK SK", RoomID_Comment_IDX="RoomID CreatedAt"), items


def session_store() -> Table:
    """Sessions with child sessions and their customers: AWS, "Data modeling schemas in DynamoDB"."""
    items = []
    for number in range(40):
        parent = {"PK": f"suuid#{_uuid(number)[:8]}x{number}"}
        token = {"access_token": f"t{number}q", "session_state": ("active", "closing")[number % 2]}
        items.append(item(**parent, SK=f"c#CUST{number % 9}", last_login_time="2023-05-12T11:30:00", **token))
        items.extend(item(**parent, SK=f"child#suuid#k{number}y{at}", **token) for at in range(number % 3))
    return table("session_store", "PK SK", GSI1_inverse="SK PK"), items


def connected_vehicles() -> Table:
    """Vehicles, their features and their users: AWS, "Data modeling schemas in DynamoDB"."""
    items = []
    for number in range(25):
        vin, user = f"WDD{number:05}XK", f"driver{number % 11}"
        items.append(item(PK=f"VIN#{vin}", SK="#META#", vehicle_id=vin, torque=str(300 + number), engine="gasoline"))
        items.append(item(PK=f"VIN#{vin}", SK=f"ID#{user}"))
        items.append(item(PK=f"ID#{user}", SK=f"VIN#{vin}"))
        for feature in ("CAMERAS", "SEATS", "MIRRORS")[: number % 4]:
            value = {feature.lower(): {"x": number, "is_active": number % 2 == 0}}
            items.append(item(PK=f"VIN#{vin}", SK=f"FEATURE#{feature}", **value))
            items.append(
                item(PK=f"VIN#{vin}", SK=f"F#{user}#ACTIVE#{feature}#front", user_id=user, vehicle_id=vin, **value)
            )
    for number in range(11):
        user = f"driver{number}"
        items.append(item(PK=f"ID#{user}", SK="#META#", user_name=user, user_phone=f"+1777888{number:04}"))
        items.append(item(PK=f"ID#{user}", SK="PREFERENCES#SEATS", user_name=user, seats={"x": number}))
        items.append(
            item(
                PK=f"ID#{user}",
                SK=f"F#{('ACTIVE', 'EXPIRED')[number % 2]}#SEATS#heat",
                user_name=user,
                expiration_date="2099-12-12T23:59:59" if number % 2 else "2023-05-05 23:59:59",
            )
        )
    return table("Connected_Vehicle", "PK SK"), items


def player_profiles() -> Table:
    """Players with their things in one partition: AWS, "Data modeling schemas in DynamoDB"."""
    items = []
    for number in range(20):
        player = f"player{number:03}"
        items.append(
            item(
                PK=player,
                SK=f"#METADATA#{player}",
                Type="Metadata",
                CreatedAt="1618500000",
                Email=f"{player}@example.com",
            )
        )
        friends = [{"FriendId": f"player{(number + at) % 20:03}", "FriendName": "Ann"} for at in range(number % 4)]
        items.append(item(PK=player, SK=f"FRIENDS#{player}", Type="Friends", FriendList=friends))
        for at in range(number % 3 + 1):
            items.append(item(PK=player, SK=f"ITEMS#{at:03}", Type="Item", ItemName=f"Potion {at}", ItemCount=str(at)))
            items.append(
                item(PK=player, SK=f"TASK#{at:03}", Type="Task", TaskStatus="Completed", TaskReward={"Gold": at})
            )
    return table("game-player-profiles", "PK SK"), items


def electro() -> Table:
    """Keys as ElectroDB composes them: a service, and names of attributes before their values."""
    items = []
    for number in range(40):
        office, team = ("moonbase", "gw zinc", "mobile")[number % 3], ("jupiter", "mercury")[number % 2]
        items.append(
            item(
                pk=f"$taskapp#employee_e{number}",
                sk="$employee_1",
                gsi1pk=f"$taskapp#office_{office}",
                gsi1sk=f"$workplaces#employee_1#team_{team}#employee_e{number}",
                employee=f"e{number}",
                office=office,
                team=team,
                salary=number * 100,
                __edb_e__="employee",
                __edb_v__="1",
            )
        )
        items.extend(
            item(
                pk=f"$taskapp#employee_e{number}",
                sk=f"$task_1#project_p{at}#task_t{number}{at}",
                gsi1pk=f"$taskapp#project_p{at}",
                gsi1sk=f"$assignments#task_1#employee_e{number}",
                employee=f"e{number}",
                project=f"p{at}",
                task=f"t{number}{at}",
                description=f"do {at}",
                __edb_e__="task",
                __edb_v__="1",
            )
            for at in range(number % 3)
        )
    return table("electro", "pk sk", gsi1="gsi1pk gsi1sk"), items


def with_leftovers() -> Table:
    """A table of some years: users and their devices, counters, locks, and items that a script left behind."""
    items = [
        item(PK=f"USER#{_uuid(number)}", SK="PROFILE", email=f"a{number}@x.org", schema_version=1 + number % 2)
        for number in range(60)
    ]
    items += [
        item(PK=f"USER#{_uuid(number)}", SK=f"DEVICE#{at}", os=("ios", "android")[at % 2], seen=1_690_000_000_000 + at)
        for number in range(60)
        for at in range(number % 3)
    ]
    items += [item(PK="COUNTER", SK=name, value=number) for number, name in enumerate(("users", "devices", "orders"))]
    items += [
        item(PK=f"LOCK#{number}", SK=f"LOCK#{number}", owner=f"host-{number}", ttl=1_700_000_000) for number in range(5)
    ]
    items += [item(PK="test", SK="test"), item(PK="tmp-1", SK="x", data=[1, "a", None]), item(PK="USER#", SK="PROFILE")]
    return table("Legacy", "PK SK"), items


LATER: dict[str, Callable[[], Table]] = {
    made.__name__: made for made in (chat, session_store, connected_vehicles, player_profiles, electro, with_leftovers)
}
"""Designs that were added when the inference was finished, to see how it does on tables that it does not know."""

PUBLISHED: dict[str, Callable[[], Table]] = {
    made.__name__: made
    for made in (
        recurring_payments,
        complaints,
        battle_royale,
        forum,
        movies,
        users_and_orders,
        fund_positions,
        colons,
        hyphens,
    )
}

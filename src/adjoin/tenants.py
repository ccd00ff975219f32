"""How the keys of a tenant are told from everybody else's in one table.

Every key of a tenant, in the table and in its indexes, begins with the tenant's prefix. No prefix
begins with another, so that whoever may reach one tenant's keys reaches nobody else's.
"""

from __future__ import annotations

from adjoin.errors import InvalidKey, shown

_END = "#"


def is_tenant(name: object) -> bool:
    """Whether something can name a tenant."""
    return isinstance(name, str) and bool(name) and _END not in name and name.isprintable()


def tenant_prefix(tenant: str) -> str:
    """What the keys of a tenant begin with: "acme#" for "acme"."""
    if not is_tenant(tenant):
        raise InvalidKey(f"{shown(tenant)} cannot name a tenant; use printable text without {_END!r}")
    return tenant + _END

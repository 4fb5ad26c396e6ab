"""Names of users."""

from __future__ import annotations

import pwd


def user_name(uid: object) -> str:
    """Return the name of a user ID on this machine; without such an account, the number."""
    try:
        return pwd.getpwuid(int(str(uid))).pw_name
    except (KeyError, ValueError, OverflowError):
        return str(uid)

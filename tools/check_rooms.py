"""Checks that the rooms under src/ include only each other's doors.

The includes must follow the edges of tools/rooms.toml, without a cycle, and each edge must be
used. A door is `<room>/<room>.hpp`; a room's `.def` tables and the headers listed in its `doors`
are doors, too.
"""

from __future__ import annotations

import re
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def doors(room: str, extra: list[str]) -> set[str]:
    tables = {f"{room}/{path.name}" for path in (ROOT / "src" / room).glob("*.def")}
    return {f"{room}/{room}.hpp", *tables, *extra}


def problems(rooms: dict[str, list[str]], extra: dict[str, list[str]]) -> list[str]:
    found = [
        f"{folder.name}: a folder under src/ that tools/rooms.toml does not name"
        for folder in folders()
        if folder.name not in rooms
    ]
    try:
        TopologicalSorter(rooms).prepare()
    except CycleError as error:
        found.append(f"cycle: {' -> '.join(error.args[1])}")
    for room, allowed in rooms.items():
        sources = sorted((ROOT / "src" / room).glob("*.[ch]pp"))
        for path in sources:
            found += [
                f"{path.relative_to(ROOT)}: {why}"
                for why in wrong_includes(path, room, allowed, rooms, extra)
            ]
        used = {included.split("/")[0] for path in sources for included in includes(path)}
        found += [
            f"tools/rooms.toml: room {room} does not use {other}"
            for other in allowed
            if other not in used
        ]
    return found


def folders() -> list[Path]:
    return sorted(path for path in (ROOT / "src").iterdir() if path.is_dir())


def includes(path: Path) -> list[str]:
    return INCLUDE.findall(path.read_text(encoding="utf-8"))


def wrong_includes(
    path: Path,
    room: str,
    allowed: list[str],
    rooms: dict[str, list[str]],
    extra: dict[str, list[str]],
) -> list[str]:
    wrong = []
    for included in includes(path):
        other = included.split("/")[0]
        if other == room or other not in rooms:
            continue
        if other not in allowed:
            wrong.append(
                f"includes {included}; room {room} may use: {', '.join(allowed) or 'no other room'}"
            )
        elif included not in doors(other, extra.get(other, [])):
            wrong.append(
                f"includes {included}; only the door {other}/{other}.hpp is open to other rooms"
            )
    return wrong


def main() -> int:
    table = tomllib.loads((ROOT / "tools" / "rooms.toml").read_text(encoding="utf-8"))
    found = problems(table["rooms"], table.get("doors", {}))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

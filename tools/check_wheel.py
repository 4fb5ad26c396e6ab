"""Finds defects of a wheel that auditwheel does not: its size, and the symbols of its libraries.

A library that is preloaded into programs of others may need nothing but glibc, and may define no
symbols but those that it interposes. The dynamic linker reports an undefined symbol without a
version only when the library is loaded, on a system whose glibc lacks it.
"""

from __future__ import annotations

import io
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GLIBC = "2.28"
MEGABYTES = 6
_OF_GLIBC = re.compile(r"(libc|libm|libdl|librt|libpthread|ld-linux-[a-z0-9-]+)\.so\.[0-9]+")
#: C++, its runtime, and zstd: the library's own copies, which no program may see. The interposed
#: functions of ADIOS2 are C++ (src/libpario.map).
_PRIVATE = re.compile(
    r"_Z(?!N6adios24core)|__cxa_|__gxx_|_Unwind_|__unw_|ZSTD_|ZDICT_|HUF_|FSE_|XXH"
)
_OF_PYTHON = re.compile(r"_?Py")


def find_defects(wheel: Path) -> list[str]:
    """The defects of a wheel, each a line of text."""
    defects = []
    if wheel.stat().st_size > MEGABYTES * 1e6:
        defects.append(f"{wheel.stat().st_size / 1e6:.2f} MB; at most {MEGABYTES} MB")
    with zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if name.endswith(".so")]
        for name in libraries:
            defects += [f"{name}: {text}" for text in find_library_defects(archive.read(name))]
    names = {name.split(".")[0] for name in libraries}
    defects += [f"{name}: missing" for name in {"pario/libpario", "pario/_native"} - names]
    return defects


def find_library_defects(content: bytes) -> Iterator[str]:
    """Yields the defects of a shared library."""
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(io.BytesIO(content))
    for tag in elf.get_section_by_name(".dynamic").iter_tags("DT_NEEDED"):
        if not _OF_GLIBC.fullmatch(tag.needed):
            yield f"needs {tag.needed}, which is no part of glibc"
    versions = dict(_read_needed_versions(elf))
    newest = [int(number) for number in GLIBC.split(".")]
    used = elf.get_section_by_name(".gnu.version")
    for index, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
        if symbol["st_shndx"] != "SHN_UNDEF":
            if _PRIVATE.match(symbol.name):
                yield f"defines {symbol.name}; expected: a hidden symbol"
            continue
        version = versions.get(used.get_symbol(index)["ndx"], "") if used else ""
        number = [int(part) for part in re.findall(r"\d+", version)]
        if version.startswith("GLIBC_") and number > newest:
            yield f"needs {symbol.name} of {version}; expected: {GLIBC} or older"
        is_weak = symbol["st_info"]["bind"] == "STB_WEAK"
        if symbol.name and not version and not is_weak and not _OF_PYTHON.match(symbol.name):
            yield f"needs {symbol.name}, which glibc {GLIBC} lacks"


def _read_needed_versions(elf: Any) -> Iterator[tuple[int, str]]:
    section = elf.get_section_by_name(".gnu.version_r")
    for _, needed in section.iter_versions() if section else ():
        for entry in needed:
            yield entry["vna_other"], entry.name


if __name__ == "__main__":
    found = {path: find_defects(Path(path)) for path in sys.argv[1:]}
    for path, texts in found.items():
        print(*(f"{path}: {text}" for text in texts or ["no defects"]), sep="\n")
    sys.exit(1 if any(found.values()) else 0)

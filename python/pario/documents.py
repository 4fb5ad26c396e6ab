"""JSON files that pario keeps: each begins with its format, and is replaced as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pario.errors import ParioError
from pario.publishing import keep_file

T = TypeVar("T")


@dataclass(frozen=True)
class Format:
    """A kind of file: the name and the version in its files, and its content in words."""

    name: str
    content: str
    version: int = 0  # 0: the name contains it

    def document(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields with the format before them."""
        version = {"version": self.version} if self.version else {}
        return {"format": self.name, **version, **fields}

    def write(
        self,
        path: Path,
        fields: Mapping[str, Any],
        *,
        indent: int | None = 1,
        durable: bool = False,
    ) -> None:
        """Writes a file, in a directory that may be missing. Raises ParioError."""
        text = json.dumps(self.document(fields), indent=indent)
        keep_file(path, text + "\n", durable=durable)

    def read(self, path: Path, parse: Callable[[dict[str, Any]], T]) -> T | None:
        """The result of ``parse`` for the fields of a file; None if there is no file, also because
        its folder is a file (a Darshan log has no files beside its records).

        Raises ParioError if the file cannot be read, is of another format, or if ``parse`` raises
        ValueError, TypeError or KeyError.
        """
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
            found = fields.pop("format"), fields.pop("version") if self.version else 0
            if found != (self.name, self.version):
                raise ValueError(f"format {found[0]}")
            return parse(fields)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise ParioError(f"{path}: {error.strerror}") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ParioError(f"{path}: {error}; expected {self.content} of {self.name}") from error

"""Samples: dictionaries of the fields of records, decoded by format and by name."""

from __future__ import annotations

import json
import pickle
import tarfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from io import BytesIO
from posixpath import splitext
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pario.errors import ParioError
from pario.records.tfexample import parse_example

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pario.records.batch import Batch

Decoder = Callable[[bytes], Any]
#: Decoders of fields by their names, in place of the built-in ones; None: leave the bytes.
Decoders = Mapping[str, Decoder | None]

IMAGES = ("jpg", "jpeg", "png", "webp", "bmp", "gif", "tif", "tiff", "ppm", "pgm", "pbm")
#: The field of a file with an image, beside that of its extension.
IMAGE = "image"
#: The fields of samples that are no members of their tar files.
_ADDED = ("__key__", "__number__")
_JSON_SUFFIXES = ("json", "jsonl", "ndjson")
_MODES = ("L", "RGB", "RGBA")


class MissingPackageError(ParioError):
    """A package that decodes a field is not installed. Loaders never skip it as a bad record."""


class Member(tarfile.TarInfo):
    """A member of a tar file. Of a damaged header tarfile makes the silent end of the file; here it
    is a ValueError."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Member:
        """The member of a header."""
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if any(buf):  # else it is the end
                raise ValueError(f"the header of a member is damaged: {error}") from error
            raise


class RecordSource(Protocol):
    """Records by number; Dataset documents the members."""

    path: str
    errors: str
    file: Any
    facts: tuple[int, ...]

    def __len__(self) -> int: ...
    def __getitem__(self, which: int, /) -> memoryview: ...
    @property
    def format(self) -> str: ...  # noqa: D102
    @property
    def column(self) -> str | tuple[str, ...]: ...  # noqa: D102
    @property
    def classes(self) -> list[str]: ...  # noqa: D102
    def name(self, number: int) -> str: ...  # noqa: D102
    @property
    def remote(self) -> bool: ...  # noqa: D102
    def with_column(self, field: str) -> RecordSource: ...  # noqa: D102
    def read_numbers(  # noqa: D102
        self, numbers: NDArray[Any], *, skip: bool
    ) -> tuple[NDArray[Any], NDArray[Any], list[tuple[int, str]]]: ...


class Raw(NamedTuple):
    """A record before it is decoded."""

    data: Any
    number: int
    #: The way to take its fields, a key of ``_FIELDS_OF``.
    kind: str
    #: The name of a packed file, or the column of Parquet.
    name: str
    #: The number of the file's class; -1: it is in no directory.
    label: int


def title_of(raw: Raw) -> str:
    """The name of a packed file, or the key of a WebDataset record; empty: there is none."""
    if raw.kind == "file":
        return raw.name
    with suppress(tarfile.TarError, StopIteration):
        if raw.kind == "tar":
            with tarfile.open(fileobj=BytesIO(raw.data), mode="r:") as archive:
                return split_name(next(iter(archive)).name)[0]
    return ""


class Inputs:
    """Makes the decoder's inputs of a batch: adds to each record its number, format and name.

    Used in the process that reads, which has the files open.
    """

    def __init__(self, datasets: Sequence[RecordSource]) -> None:
        import numpy as np

        self._datasets = datasets
        self._kinds = [_kind_of(one) for one in datasets]
        self._ends = np.cumsum([len(one) for one in datasets])
        named = [one for one, kind in zip(datasets, self._kinds, strict=True) if kind == "file"]
        classes = sorted({name for one in named for name in one.classes})
        self._labels = {name: label for label, name in enumerate(classes)}

    def of(self, batch: Batch) -> list[Raw]:
        """The inputs of a batch's records."""
        numbers = batch.numbers.astype("i8")
        files = self._ends.searchsorted(numbers, side="right").tolist()
        return [
            self.raw(record, number, file)
            for record, number, file in zip(batch, numbers.tolist(), files, strict=True)
        ]

    def raw(self, record: memoryview, number: int, file: int) -> Raw:
        """The input of one record; ``file``: the position of its Dataset among all."""
        dataset, kind = self._datasets[file], self._kinds[file]
        if kind == "file":
            name = dataset.name(number - int(self._ends[file]) + len(dataset))
            directory = name.partition("/")[0] if "/" in name else None
            return Raw(record, number, kind, name, self._labels.get(directory or "", -1))
        return Raw(record, number, kind, str(dataset.column), -1)


class Decode:
    """Decodes records to dictionaries. Can be pickled if the decoders can."""

    def __init__(self, decoders: Decoders) -> None:
        self._decoders = dict(decoders)

    def __call__(self, raw: Raw) -> dict[str, Any]:
        """The fields of a record, decoded."""
        fields = _FIELDS_OF[raw.kind](raw)
        for name, value in fields.items():
            decoder = self._decoder_of(name, raw.kind)
            if decoder:
                fields[name] = decoder(value)
        if raw.kind == "file" and (name := _image_field(fields)):
            fields[IMAGE] = fields[name]
        fields["__number__"] = raw.number
        return fields

    def field(self, raw: Raw, name: str) -> Any:
        """One field of a record, decoded; the others are not. KeyError: there is none."""
        fields = _FIELDS_OF[raw.kind](raw)
        if name == IMAGE and raw.kind == "file":
            name = _image_field(fields) or name
        value = fields[name]
        decoder = self._decoder_of(name, raw.kind)
        return decoder(value) if decoder else value

    def _decoder_of(self, field: str, kind: str) -> Decoder | None:
        if field in self._decoders:
            return self._decoders[field]
        if kind == "file" and field in IMAGES and IMAGE in self._decoders:
            return self._decoders[IMAGE]
        if kind not in ("tar", "file") or field.startswith("__"):
            return None
        return _DECODERS.get(field.rpartition(".")[2])


class Samples:
    """Records of a Dataset by number, as dictionaries. Can be pickled if the decoders can."""

    def __init__(self, dataset: RecordSource, decoders: Decoders) -> None:
        self._dataset, self._decode = dataset, Decode(decoders)
        self._inputs = Inputs([self._dataset])

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, which: Any) -> Any:
        if hasattr(which, "__index__"):
            number = range(len(self))[which.__index__()]
            return self._decode(self._inputs.raw(self._dataset[number], number, 0))
        import numpy as np

        numbers = [range(len(self))[number] for number in which]
        skip = self._dataset.errors == "skip"
        memory, places, failures = self._dataset.read_numbers(np.array(numbers, "u8"), skip=skip)
        view, failed = memoryview(memory.data), {position for position, _ in failures}
        return [
            self._decode(self._inputs.raw(view[begin:end], numbers[position], 0))
            for position, (begin, end) in enumerate(places.tolist())
            if position not in failed
        ]


def decoders_of(decode: bool | Decoders) -> Decoders | None:
    """The user's decoders of fields; None: records stay bytes."""
    if isinstance(decode, Mapping):
        return decode
    if not isinstance(decode, bool):
        raise ParioError(f"Loader: decode={decode!r}: expected True, False or decoders by field")
    return {} if decode else None


def split_members(record: Any) -> dict[str, Any]:
    """The members of a WebDataset record by their extensions; ``__key__``: the name before it.
    Raises ParioError for two members with one extension, as webdataset does, and for an extension
    that is the name of another field."""
    members: dict[str, Any] = {}
    with tarfile.open(fileobj=BytesIO(record), mode="r:", tarinfo=Member) as archive:
        for member in archive:
            key, extension = split_name(member.name)
            content = archive.extractfile(member) if member.isfile() else None
            if extension is None or content is None:
                continue
            if extension in _ADDED:
                raise ParioError(
                    f"{member.name}: the extension {extension} cannot be a field of its sample,"
                    " because another field has this name"
                )
            if extension in members:
                raise ParioError(f"{member.name}: a second member '{extension}' of its sample")
            members["__key__"], members[extension] = key, content.read()
    return members


def split_name(name: str) -> tuple[str, str | None]:
    """A name before the first dot of its last part, and the extension in lower case, as webdataset
    reads it; None: there is no dot, or nothing before it."""
    directory, _, last = name.rpartition("/")
    stem, dot, extension = last.partition(".")
    if not (stem and dot):
        return name, None
    return f"{directory}/{stem}".lstrip("/"), extension.lower()


def _image_field(fields: Mapping[str, Any]) -> str:
    """The field of a file that is named by the extension of an image; empty: there is none."""
    return next((name for name in fields if name in IMAGES), "")


def _kind_of(dataset: RecordSource) -> str:
    path = dataset.path.removesuffix(".gz").removesuffix(".zst")
    suffix = path.rpartition(".")[2].lower()
    if dataset.format == "lines":
        return "json" if suffix in _JSON_SUFFIXES else "text"
    if dataset.format == "parquet":
        return "column" if isinstance(dataset.column, str) and dataset.column else "row"
    kinds = {"tar": "tar", "tfrecord": "example", "prec": "file", "directory": "file"}
    return kinds.get(dataset.format, "data")


def _fields_of_file(raw: Raw) -> dict[str, Any]:
    key, extension = splitext(raw.name)
    fields: dict[str, Any] = {"__key__": key, extension[1:].lower() or "data": bytes(raw.data)}
    if raw.label >= 0:
        fields |= {"class": raw.name.partition("/")[0], "label": raw.label}
    return fields


def _fields_of_json(raw: Raw) -> dict[str, Any]:
    value = json.loads(bytes(raw.data))
    return value if isinstance(value, dict) else {"json": value}


_FIELDS_OF: dict[str, Callable[[Raw], dict[str, Any]]] = {
    "tar": lambda raw: split_members(raw.data),
    "file": _fields_of_file,
    "json": _fields_of_json,
    "text": lambda raw: {"text": str(raw.data, "utf-8")},
    "example": lambda raw: parse_example(raw.data),
    # Rows that pario's own reader of Parquet pickled, in memory.
    "row": lambda raw: pickle.loads(raw.data),
    "column": lambda raw: {raw.name: bytes(raw.data)},
    "data": lambda raw: {"data": bytes(raw.data)},
}


def _decode_array(content: bytes) -> Any:
    import numpy as np

    return np.load(BytesIO(content), allow_pickle=False)


def _decode_arrays(content: bytes) -> dict[str, Any]:
    return dict(_decode_array(content))


def _decode_image(name: str, content: bytes) -> Any:
    import numpy as np

    try:
        from PIL import Image
    except ImportError as error:
        raise MissingPackageError(
            f"decoding {name} needs the package pillow: pip install pillow; decode={{{name!r}:"
            " None}} leaves the bytes"
        ) from error
    with Image.open(BytesIO(content)) as image:
        # A copy, because the array of an image is read-only.
        return np.array(image if image.mode in _MODES else image.convert("RGB"))


def _decode_text(content: bytes) -> str:
    return content.decode()


_DECODERS: dict[str, Decoder] = {
    **{name: partial(_decode_image, name) for name in IMAGES},
    **dict.fromkeys(("txt", "text", "transcript"), _decode_text),
    **dict.fromkeys(("cls", "cls2", "index", "inx", "id", "count"), int),
    "json": json.loads,
    "npy": _decode_array,
    "npz": _decode_arrays,
}

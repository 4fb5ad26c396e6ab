"""Samples are dictionaries of the fields of records, decoded by format and name."""

from __future__ import annotations

import io
import json
import pickle
import re
import struct
import sys
import tarfile
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pario import records
from pario.cli import main
from pario.errors import ParioError
from pario.records import Dataset, Loader
from pario.records.tfexample import parse_example


def samples(path: Any, **options: Any) -> list[dict[str, Any]]:
    """All samples in the order of the file."""
    return list(chain(*Loader(path, 2, decode=True, **options)))


def picture(mode: str = "RGB") -> tuple[bytes, Any]:
    """A PNG file and its pixels."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    shape = (2, 3) if mode == "L" else (2, 3, 3)
    pixels = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    content = io.BytesIO()
    image.fromarray(pixels).save(content, "PNG")
    return content.getvalue(), pixels


def array_file(array: Any) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def write_tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return path


def test_members_of_webdataset_are_decoded_by_their_extensions(tmp_path: Path) -> None:
    image, pixels = picture()
    members = {"a/1.png": image, "a/1.cls": b"7", "a/1.json": b'{"x": [1]}', "a/1.TXT": b"hi"}
    members |= {"a/1.emb.npy": array_file(np.arange(3)), "a/1.bin": b"\0", "2.seg.png": image}
    path = write_tar(tmp_path / "a.tar", members)
    first, second = samples(path)
    assert np.array_equal(first.pop("png"), pixels)
    assert first.pop("emb.npy").tolist() == [0, 1, 2]
    assert first == {
        "__key__": "a/1",
        "__number__": 0,
        "cls": 7,
        "json": {"x": [1]},
        "txt": "hi",
        "bin": b"\0",
    }
    assert np.array_equal(second["seg.png"], pixels)
    assert second["seg.png"].flags.writeable  # for torch.from_numpy()
    chosen = {"png": len, "json": None, "cls": None}
    (batch,) = Loader(path, 1, decode=chosen, world=1).filter(lambda s: "cls" in s).batch(2)
    assert (batch[0]["png"], batch[0]["json"], batch[0]["cls"]) == (
        len(image),
        b'{"x": [1]}',
        b"7",
    )


@pytest.mark.parametrize("packed", [False, True])
def test_files_have_key_class_and_label(tmp_path: Path, packed: bool) -> None:
    image, pixels = picture("L")
    for name in ("dog/v1.5 a.png", "cat/b/2.PNG", "cat/1.png", ".readme"):
        (tmp_path / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "images" / name).write_bytes(image)
    path = tmp_path / "images"
    if packed:
        path = tmp_path / "a.prec"
        assert main(["records", "pack", str(tmp_path / "images"), "-o", str(path)]) == 0
    dataset = Dataset(path, format="" if packed else "directory")
    assert dataset.classes == ["cat", "dog"]
    found = samples(dataset)
    assert all(
        np.array_equal(sample.pop("png"), pixels) and np.array_equal(sample.pop("image"), pixels)
        for sample in found
        if "png" in sample
    )
    assert sorted(found, key=lambda sample: sample["__key__"]) == [
        {"__key__": key, "class": name, "label": label, "__number__": number}
        if name
        else {"__key__": key, "data": image, "__number__": number}
        for number, (key, name, label) in sorted(
            enumerate(
                [
                    (".readme", "", 0),
                    ("cat/1", "cat", 0),
                    ("cat/b/2", "cat", 0),
                    ("dog/v1.5 a", "dog", 1),
                ]
            )
        )
    ]


@pytest.mark.parametrize("names", [("b.txt", "b.txt"), ("b.jpg", "b.JPG")])
def test_members_of_one_name_are_refused(tmp_path: Path, names: tuple[str, str]) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    second = names[1].replace(".", r"\.")
    with pytest.raises(ParioError, match=rf"{second}: a second member '(txt|jpg)' of its sample"):
        samples(tmp_path / "a.tar")


@pytest.mark.parametrize("extension", ["__key__", "__number__"])
def test_a_member_with_the_name_of_another_field_is_refused(tmp_path: Path, extension: str) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo(f"b.{extension}"))
    with pytest.raises(ParioError, match=rf"b\.{extension}: the extension {extension} cannot be"):
        samples(tmp_path / "a.tar")


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_an_empty_extension_is_a_field(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / name, "w:gz" if name.endswith("gz") else "w") as archive:
        for member in ("a.", "b.x"):
            archive.addfile(tarfile.TarInfo(member))
    if name.endswith("gz"):
        pytest.importorskip("indexed_gzip")
    assert [(sample["__key__"], set(sample)) for sample in samples(tmp_path / name)] == [
        ("a", {"__key__", "", "__number__"}),
        ("b", {"__key__", "x", "__number__"}),
    ]


def test_images_of_any_extension_are_in_one_field(tmp_path: Path) -> None:
    image, pixels = picture()
    for name in ("1.png", "2.jpg", "3.JPEG", "4.txt"):
        (tmp_path / name).write_bytes(image if name != "4.txt" else b"no")
    dataset = Dataset(tmp_path, format="directory")
    found = [sample.get("image") for sample in samples(dataset)]
    assert all(np.array_equal(one, pixels) for one in found[:3]) and found[3:] == [None]
    skipping = Dataset(tmp_path, format="directory", errors="skip")
    assert skipping.lengths("image").tolist() == [2, 2, 2, -1]
    sizes = chain(*Loader(dataset, 2, decode={"image": len}))
    assert [one.get("image", 0) for one in sizes] == [*[len(image)] * 3, 0]
    assert samples(dataset)[1]["jpg"] is not None


def test_lengths_are_those_of_the_file_that_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARIO_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "tokens.jsonl"
    path.write_text('{"t": [1, 2]}\n{"t": [1]}\n')
    before = Dataset(path)
    (tmp_path / "new").write_text('{"t": []}\n{"t": [1, 2, 3]}\n')
    (tmp_path / "new").replace(path)
    assert before.lengths("t").tolist() == [2, 1]
    assert Dataset(path).lengths("t").tolist() == [0, 3]


def test_a_column_of_another_parquet_file_is_refused(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    import pyarrow

    path = tmp_path / "tokens.parquet"
    pq.write_table(pyarrow.table({"t": [[1, 2], [1]]}), path)
    before = Dataset(path)
    pq.write_table(pyarrow.table({"t": [[], [1]]}), tmp_path / "new")
    (tmp_path / "new").replace(path)
    with pytest.raises(OSError, match="modified since it was opened"):
        before.lengths("t")


def test_parquet_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    import pyarrow

    columns = [pyarrow.array([number]) for number in range(3)]
    pq.write_table(pyarrow.table(columns, names=["a", "b", "a"]), tmp_path / "a.parquet")
    for options in ({}, {"column": "a"}, {"column": ["b", "a"]}):
        with pytest.raises(ParioError, match="2 columns are named a"):
            Dataset(tmp_path / "a.parquet", **options)
    assert bytes(Dataset(tmp_path / "a.parquet", column=["b"])[0]) == b'{"b":1}'


def test_whole_numbers_beside_nulls_are_exact(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    import pyarrow

    rows = [[2**53 + 1, None], [5, None], [None], [-(2**63), None], None]
    pq.write_table(pyarrow.table({"a": rows}), tmp_path / "a.parquet")
    found = [one["a"] for batch in Loader(tmp_path / "a.parquet", 5, decode=True) for one in batch]
    assert [found[0], found[3], found[4]] == [rows[0], rows[3], None]
    np.testing.assert_array_equal(found[1], [5, np.nan])
    np.testing.assert_array_equal(found[2], [np.nan])


def test_a_pickled_loader_refuses_a_file_that_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1\n2\n3\n")
    pickled = pickle.dumps(Loader(path, 2))
    path.write_text("1\n2\n3\n4\n5\n")
    with pytest.raises(OSError, match="modified since it was opened"):
        pickle.loads(pickled)


def test_lines_are_json_or_text(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"x": 1, "y": "ü"}\n[2]\n')
    (tmp_path / "a.txt").write_text("ü\n\n")
    assert samples(tmp_path / "a.jsonl") == [
        {"x": 1, "y": "ü", "__number__": 0},
        {"json": [2], "__number__": 1},
    ]
    assert samples(tmp_path / "a.txt") == [
        {"text": "ü", "__number__": 0},
        {"text": "", "__number__": 1},
    ]


def test_other_records_stay_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abcd")
    dataset = Dataset(tmp_path / "a", format="fixed", size=2)
    assert samples(dataset) == [
        {"data": b"ab", "__number__": 0},
        {"data": b"cd", "__number__": 1},
    ]


class TestParquet:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        parquet = pytest.importorskip("pyarrow.parquet")
        vectors = pyarrow.array(
            [[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]], pyarrow.list_(pyarrow.float32(), 2)
        )
        table = pyarrow.table(
            {
                "image": [b"\xff", b"", None],
                "label": [3, 1, 2],
                "tokens": [[1, 2], [], None],
                "names": [["a"], ["b", "c"], []],
                "vector": vectors,
            }
        )
        parquet.write_table(table, tmp_path / "a.parquet", row_group_size=2)
        return tmp_path / "a.parquet"

    def test_columns_of_registered_types_are_those_of_their_storage(self, tmp_path: Path) -> None:
        pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        parquet = pytest.importorskip("pyarrow.parquet")

        class Matrix(pyarrow.ExtensionType):  # type: ignore[misc, name-defined]
            value_type = "float32"  # a name, as of the types of Hugging Face's datasets

            def __init__(self) -> None:
                super().__init__(pyarrow.list_(pyarrow.float32()), "tests.matrix")

            def __arrow_ext_serialize__(self) -> bytes:
                return b""

            @classmethod
            def __arrow_ext_deserialize__(cls, storage: Any, content: bytes) -> Any:
                return cls()

        storage = pyarrow.array([[0.5, 1.5], None], pyarrow.list_(pyarrow.float32()))
        column = pyarrow.ExtensionArray.from_storage(Matrix(), storage)
        parquet.write_table(pyarrow.table({"x": column}), tmp_path / "a.parquet")
        pyarrow.register_extension_type(Matrix())
        try:
            first, second = samples(tmp_path / "a.parquet")
        finally:
            pyarrow.unregister_extension_type("tests.matrix")
        assert (first["x"].tolist(), first["x"].dtype, second["x"]) == ([0.5, 1.5], "f4", None)

    def test_columns_are_values_and_arrays(self, path: Path) -> None:
        found = samples(path)
        vectors = [sample.pop("vector") for sample in found]
        assert [vector.tolist() for vector in vectors] == [[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]]
        assert {vector.dtype for vector in vectors} == {np.dtype("f4")}
        tokens = [sample.pop("tokens") for sample in found]
        assert [tokens[0].tolist(), tokens[1].tolist(), tokens[2]] == [[1, 2], [], None]
        assert found == [
            {"image": b"\xff", "label": 3, "names": ["a"], "__number__": 0},
            {"image": b"", "label": 1, "names": ["b", "c"], "__number__": 1},
            {"image": None, "label": 2, "names": [], "__number__": 2},
        ]

    def test_only_the_named_columns_are_read(self, path: Path) -> None:
        dataset = Dataset(path, column=["label", "names"])
        assert json.loads(bytes(dataset[1])) == {"label": 1, "names": ["b", "c"]}
        again = pickle.loads(pickle.dumps(dataset.with_typed_rows()))
        for one in (dataset, again):
            assert samples(one)[0] == {"label": 3, "names": ["a"], "__number__": 0}
        assert samples(Dataset(path, column="label"), errors="skip") == []
        with pytest.raises(ParioError, match="column none: expected one of image, label"):
            Dataset(path, column=["label", "none"])[0]

    def test_a_column_is_a_field(self, path: Path) -> None:
        with pytest.raises(ParioError, match="expected bytes or text"):
            samples(Dataset(path, column="image"))


def varint(number: int) -> bytes:
    parts = []
    number %= 2**64
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def example(**features: bytes) -> bytes:
    """A TF Example of encoded features."""
    entries = [field(1, name.encode()) + field(2, value) for name, value in features.items()]
    return field(1, b"".join(field(1, entry) for entry in entries))


INTEGERS = [0, 1, 127, 128, -1, 2**63 - 1, -(2**63), 300]


def test_features_of_tf_examples(tmp_path: Path) -> None:
    content = example(
        numbers=field(3, field(1, b"".join(map(varint, INTEGERS)))),
        single=field(3, b"".join(b"\x08" + varint(number) for number in (5, 6))),
        floats=field(2, field(1, struct.pack("<2f", 0.5, -1.5))),
        one=field(2, b"\x0d" + struct.pack("<f", 2.5)),
        image=field(1, field(1, b"\xff\0")),
        words=field(1, field(1, b"a") + field(1, b"")),
        nothing=b"",
        none=field(3, b""),
    )
    found = parse_example(content)
    assert found["numbers"].tolist() == INTEGERS and found["numbers"].dtype == np.int64
    assert found["single"].tolist() == [5, 6]
    assert found["floats"].tolist() == [0.5, -1.5] and found["floats"].dtype == np.float32
    assert found["one"].tolist() == [2.5]
    assert (found["image"], found["words"], found["nothing"]) == (b"\xff\0", [b"a", b""], [])
    assert found["none"].tolist() == []


def test_examples_agree_with_tensorflow() -> None:
    train = pytest.importorskip("tensorflow", reason="TensorFlow is not installed").train
    features = {"a": train.Feature(int64_list=train.Int64List(value=INTEGERS))}
    message = train.Example(features=train.Features(feature=features))
    assert parse_example(message.SerializeToString())["a"].tolist() == INTEGERS


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_damaged_example_is_an_error(cut: int) -> None:
    content = example(numbers=field(3, field(1, b"".join(map(varint, INTEGERS)))))
    with pytest.raises(ValueError, match=r"no TF Example"):
        parse_example(content[:-cut])


def test_a_damaged_sample_names_its_record_or_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"x": 1}\nno json\n')
    with pytest.raises(ParioError, match="record 1: transform: JSONDecodeError"):
        samples(tmp_path / "a.jsonl")
    assert samples(tmp_path / "a.jsonl", errors="skip") == [{"x": 1, "__number__": 0}]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_sample_that_cannot_be_decoded_is_named(tmp_path: Path, workers: int) -> None:
    (tmp_path / "files" / "dog").mkdir(parents=True)
    (tmp_path / "files" / "dog" / "1.json").write_text("no json")
    path = write_tar(tmp_path / "a.tar", {"a/0.json": b"1", "a/1.x.json": b"no json"})
    for source, name in ((tmp_path / "files", r"0 \(dog/1.json\)"), (path, r"1 \(a/1\)")):
        with pytest.raises(ParioError, match=f"record {name}: transform: JSONDecodeError"):
            samples(source, workers=workers)
        loader = Loader(source, 2, decode=True, errors="skip", workers=workers)
        list(loader)
        assert re.match(f"record {name}: transform: JSON", loader.stats.first_skipped)


def test_a_missing_pillow_is_named_and_never_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_tar(tmp_path / "a.tar", {"1.jpg": b"content"})
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ParioError, match="decoding jpg needs the package pillow: pip install"):
        samples(path, errors="skip")
    (batch,) = Loader(path, 1, decode={"jpg": None})
    assert batch == [{"__key__": "1", "jpg": b"content", "__number__": 0}]


def test_records_stay_bytes_by_default(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n')
    (batch,) = Loader(tmp_path / "a.jsonl", 1)
    assert isinstance(batch, records.Batch)
    with pytest.raises(ParioError, match="decode='x': expected True, False or decoders"):
        Loader(tmp_path / "a.jsonl", 1, decode="x")  # type: ignore[arg-type]

"""``pario checkpoint``: its output and exit statuses."""

import json

import h5py
import numpy as np
import pytest

from pario import checkpoint
from pario.checkpoint import CheckpointError
from pario.checkpoint.examine import slice_of
from pario.checkpoint.geometry import whole
from pario.checkpoint.header import read_header
from pario.cli import main
from tests.python.support.threads import run

FIELD = np.arange(60.0).reshape(3, 4, 5)


@pytest.fixture
def directory(tmp_path):
    """Makes two checkpoints of two ranks that differ in one element."""

    def program(ranks):
        box = checkpoint.divide(FIELD.shape, ranks.size, ranks.rank)
        with checkpoint.Writer(ranks, tmp_path / "ckpt", durable=False) as writer:
            for step in (5, 10):
                field = FIELD.copy()
                field[2, 1, 0] += step - 5
                part = checkpoint.block(
                    field[box.within(whole(FIELD.shape))],
                    FIELD.shape,
                    box.begin,
                    dims=("z", "y", "x"),
                )
                writer.save(step, {"flow/T": part, "name": "flame"}, {"time": step / 10})

    run(2, program)
    return tmp_path / "ckpt"


def cli(capsys, *arguments):
    status = main(["checkpoint", *map(str, arguments)])
    return status, *capsys.readouterr()


def test_ls_names_all_checkpoints_and_their_damage(directory, capsys):
    (directory / "step-00000011.h5.part").write_bytes(b"half")
    (directory / "step-00000012.h5").write_bytes(b"no HDF5")
    status, out, _ = cli(capsys, "ls", directory)
    assert status == 0
    assert [(line.split()[0], line.split()[5:7]) for line in out.splitlines()] == [
        ("12", ["step-00000012.h5", "damaged:"]),
        ("5", ["step-00000005.h5"]),
        ("10", ["step-00000010.h5"]),
        ("11", ["step-00000011.h5.part", "not"]),
    ]
    assert [row["step"] for row in json.loads(cli(capsys, "ls", directory, "--json")[1])] == [
        12,
        5,
        10,
        11,
    ]


def test_ls_of_an_empty_directory(tmp_path, capsys):
    assert cli(capsys, "ls", tmp_path) == (1, "", f"{tmp_path}: no checkpoints\n")
    assert cli(capsys, "ls", tmp_path, "--json") == (1, "[]\n", "")


def test_ls_of_one_checkpoint_describes_it(directory, capsys):
    status, out, _ = cli(capsys, "ls", directory / "step-00000005.h5")
    assert status == 0 and out.split()[0] == "5" and out.split()[-1] == "step-00000005.h5"
    status, _, told = cli(capsys, "ls", directory / "none")
    assert (status, told) == (1, f"{directory}/none: no such file or directory\n")


def test_a_checkpoint_in_parts_is_listed_and_not_pruned(tmp_path, capsys):
    with checkpoint.Writer(None, tmp_path / "ckpt", files="rank", durable=False) as writer:
        path = writer.save(7, {"T": FIELD})
    assert cli(capsys, "ls", path)[1].split()[0] == "7"
    status, _, told = cli(capsys, "prune", path, "--keep", 1)
    assert status == 2 and "is a checkpoint; expected a directory of them" in told


def test_diff_of_single_numbers(tmp_path, capsys):
    for number in range(2):
        with checkpoint.Writer(None, tmp_path / str(number), durable=False) as writer:
            writer.save(1, {"n": number + 0.5, "word": "ab"[number]})
    assert cli(capsys, "diff", tmp_path / "0", tmp_path / "1")[:2] == (
        1,
        "array 'n': it differs, by 1\narray 'word': it differs\n",
    )


def test_diff_names_arrays_and_attributes_that_only_one_has(tmp_path, capsys):
    contents = {
        "a": ({"i": np.arange(6), "x": np.zeros(2), "s": np.zeros(2)}, {"t": 1.5}),
        "b": ({"i": np.array([0, 1, 9, 3, 12, 5]), "y": np.zeros(2), "s": np.zeros((2, 1))}, {}),
    }
    paths = []
    for name, (arrays, attrs) in contents.items():
        with checkpoint.Writer(None, tmp_path / name, durable=False) as writer:
            paths.append(writer.save(1, arrays, attrs))
    status, out, _ = cli(capsys, "diff", *paths)
    assert (status, out.splitlines()) == (
        1,
        [
            "attribute 't': 1.5, not there",
            "array 'i': 2 of 6 elements differ, the first at [2], by 8 at most",
            f"array 'x': only in {paths[0]}",
            "array 's': shape [2], [2, 1]",
            f"array 'y': only in {paths[1]}",
        ],
    )


def test_show_has_no_figures_of_an_array_without_numbers(tmp_path, capsys):
    with checkpoint.Writer(None, tmp_path / "ckpt", durable=False) as writer:
        writer.save(1, {"T": np.full(3, np.nan), "some": np.array([1.0, np.nan])})
    rows = json.loads(cli(capsys, "show", tmp_path / "ckpt", "--json")[1])["arrays"]
    assert [[row[key] for key in ("name", "least", "mean", "not_numbers")] for row in rows] == [
        ["T", None, None, 3],
        ["some", 1.0, 1.0, 1],
    ]


def test_show_describes_the_content(directory, capsys):
    status, out, _ = cli(capsys, "show", directory, "--step", 5)
    assert status == 0
    assert (
        "step-00000005.h5: step 5, 500 B" in out and "by 2 ranks on" in out and "time = 0.5" in out
    )
    assert "flow/T  float64     480 B  3 z × 4 y × 5 x  2 blocks" in out
    assert "least 0, mean 29.5, most 59" in out
    document = json.loads(cli(capsys, "show", directory, "--json", "--quick")[1])
    assert (document["step"], document["attrs"], [row["name"] for row in document["arrays"]]) == (
        10,
        {"time": 1.0},
        ["flow/T", "name"],
    )


def test_verify_names_the_damaged_block(directory, capsys):
    assert cli(capsys, "verify", directory, "--all")[0] == 0
    with h5py.File(directory / "step-00000010.h5", "r+") as file:
        file["flow/T"][2, 3, 4] = 0
    status, out, _ = cli(capsys, "verify", directory)
    assert status == 1
    assert out.splitlines() == [
        f"{directory}/step-00000010.h5: array 'flow/T': [0:3, 0:4, 2:5], saved by rank 1, is not"
        " what was saved"
    ]


def test_diff_reports_the_place_and_size_of_differences(directory, capsys):
    one, other = directory / "step-00000005.h5", directory / "step-00000010.h5"
    status, out, _ = cli(capsys, "diff", one, other)
    assert (status, out.splitlines()) == (
        1,
        [
            "attribute 'time': 0.5, 1.0",
            "array 'flow/T': 1 of 60 elements differ, the first at [2, 1, 0], by 5 at most",
        ],
    )
    assert cli(capsys, "diff", one, one) == (0, "", "")
    assert cli(capsys, "diff", one, other, "--tolerance", 0.2)[1] == "attribute 'time': 0.5, 1.0\n"


def test_a_file_of_another_program_has_no_checksums(tmp_path, capsys):
    path = tmp_path / "step-00000001.h5"
    with h5py.File(path, "w") as file:
        file["T"] = FIELD
    assert cli(capsys, "verify", path) == (
        0,
        f"{path}: has no checksums: it was not saved by pario\n",
        "",
    )


def test_verify_of_all_names_a_checkpoint_that_cannot_be_opened(directory, capsys):
    whole_file = (directory / "step-00000010.h5").read_bytes()
    (directory / "step-00000010.h5").write_bytes(whole_file[:-100])
    status, out, _ = cli(capsys, "verify", directory, "--all")
    first, second = out.splitlines()
    assert (status, first) == (1, f"{directory}/step-00000005.h5: 3 blocks of 2 arrays are well")
    assert second.startswith(f"{directory}/step-00000010.h5: its HDF5 metadata is not what was")


def test_prune_keeps_the_newest(directory, capsys):
    status, out, _ = cli(capsys, "prune", directory, "--keep", 1)
    assert (status, out) == (0, f"removed {directory}/step-00000005.h5\n")


def test_prune_counts_no_damaged_checkpoints_and_leaves_unfinished_ones(directory, capsys):
    with (directory / "step-00000010.h5").open("r+b") as file:
        file.truncate(3000)
    (directory / "step-00000020.h5.part").write_bytes(b"half")
    before = sorted(path.name for path in directory.iterdir())
    for keep in (1, 2):
        assert cli(capsys, "prune", directory, "--keep", keep) == (0, "", "")
    assert sorted(path.name for path in directory.iterdir()) == before


def test_a_file_is_verified_as_a_directory_is(directory, capsys):
    path = directory / "step-00000005.h5"
    assert cli(capsys, "verify", path, "--all") == (
        0,
        f"{path}: 3 blocks of 2 arrays are well\n",
        "",
    )
    status, _, err = cli(capsys, "show", path, "--step", 9)
    assert (status, err) == (2, f"pario checkpoint: {path} is of step 5, not of step 9\n")


def test_prune_makes_no_directory(tmp_path, capsys):
    status, out, err = cli(capsys, "prune", tmp_path / "nothing", "--keep", 1)
    assert (status, out, err) == (
        2,
        "",
        f"pario checkpoint: {tmp_path}/nothing: no such directory\n",
    )
    assert not list(tmp_path.iterdir())


def test_merge_into_a_missing_directory_is_an_error_that_names_it(directory, capsys, tmp_path):
    status, _, err = cli(capsys, "merge", directory, "-o", tmp_path / "none" / "one.h5")
    assert (status, err) == (
        2,
        f"pario checkpoint: {tmp_path}/none/one.h5: No such file or directory\n",
    )


@pytest.mark.system
def test_plot_draws_a_slice(directory, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    status, out, _ = cli(capsys, "plot", directory, "flow/T", "--axis", 1, "-o", tmp_path / "T.png")
    assert (status, out) == (0, f"{tmp_path}/T.png\n")
    assert (tmp_path / "T.png").read_bytes().startswith(b"\x89PNG")
    status, _, err = cli(capsys, "plot", directory, "flow/T", "-o", tmp_path / "none" / "T.png")
    assert (status, err) == (
        2,
        f"pario checkpoint: {tmp_path}/none/T.png: No such file or directory\n",
    )
    assert "no array 'u'; it has flow/T, name" in cli(capsys, "plot", directory, "u")[2]
    assert (
        "has no index 9 along axis 0" in cli(capsys, "plot", directory, "flow/T", "--index", 9)[2]
    )


@pytest.mark.parametrize(
    ("value", "about"),
    [
        (1.5, "of type float64 and shape []"),
        (np.zeros((0, 3)), "of type float64 and shape [0, 3]"),
        (np.zeros(3, "c16"), "of type complex128 and shape [3]"),
    ],
)
def test_an_array_that_cannot_be_drawn_is_named(tmp_path, value, about):
    with checkpoint.Writer(None, tmp_path / "ckpt", durable=False) as writer:
        path = writer.save(1, {"T": value})
    with pytest.raises(CheckpointError) as error:
        slice_of(read_header(path), "T", 0, None)
    assert str(error.value) == f"array 'T' {about} cannot be drawn"


def test_plot_of_a_missing_axis(directory, capsys):
    pytest.importorskip("matplotlib")
    status, _, told = cli(capsys, "plot", directory, "flow/T", "--axis", 3)
    assert status == 2 and "array 'flow/T' of shape [3, 4, 5] has no axis 3" in told


def test_a_path_without_a_checkpoint_is_an_error_that_names_it(tmp_path, capsys):
    for name in ("verify", "show"):
        status, _, err = cli(capsys, name, tmp_path / "nothing")
        assert status == 2
        assert f"{tmp_path}/nothing: no such file; expected a checkpoint, or a directory" in err


def test_a_file_that_is_cut_off_is_an_error_with_its_size(directory, tmp_path, capsys):
    whole = next(directory.glob("*.h5")).read_bytes()
    for size, text in ((0, "0 bytes"), (3000, "3,000 bytes")):
        (tmp_path / "a.h5").write_bytes(whole[:size])
        status, _, err = cli(capsys, "show", tmp_path / "a.h5")
        assert status == 2
        assert f"a.h5: it is no HDF5 file, or it is cut off: it has {text}" in err


def test_a_conversion_to_its_source_is_refused(directory, capsys):
    before = sorted(directory.iterdir())
    status, _, err = cli(capsys, "convert", directory, f"{directory}/.")
    assert status == 2 and f"{directory}: is the source; expected another place" in err
    assert sorted(directory.iterdir()) == before

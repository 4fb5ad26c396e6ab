"""HDF5 files of others that name files of this user: the named files are not read."""

import ast
import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest

import pario
from pario.checkpoint import CheckpointError, Writer, block, load
from pario.cli import main

#: The content of the user's file, which no hostile file may reveal.
SECRET = b"secret of the user" * 4
NUMBERS = np.frombuffer(SECRET, np.uint8)


@pytest.fixture
def secret(tmp_path):
    """Makes a file of the user outside of the checkpoint's directory, and the same bytes in
    HDF5."""
    home = tmp_path / "home"
    home.mkdir()
    with h5py.File(home / "secret.h5", "w") as file:
        file["x"] = NUMBERS
    path = home / "secret"
    path.write_bytes(SECRET)
    return path


@pytest.fixture
def here(tmp_path):
    """Makes the directory of the hostile file."""
    path = tmp_path / "hostile"
    path.mkdir()
    return path


def add_external(group, name, path):
    """Adds a dataset whose raw data is stored in another file."""
    group.create_dataset(name, NUMBERS.shape, "u1", external=[(str(path), 0, NUMBERS.nbytes)])


def add_virtual(group, name, path, dataset="x"):
    """Adds a dataset whose elements are stored in another HDF5 file."""
    layout = h5py.VirtualLayout(NUMBERS.shape, "u1")
    layout[:] = h5py.VirtualSource(path, dataset, NUMBERS.shape)
    group.create_virtual_dataset(name, layout)


def external_in_the_root(file, secret):
    add_external(file, "x", secret)


def external_by_a_relative_name(file, secret):
    add_external(file, "x", f"../{secret.parent.name}/{secret.name}")


def external_in_a_group(file, secret):
    add_external(file.create_group("a/b"), "x", secret)


def external_through_a_soft_link(file, secret):
    add_external(file.create_group("hidden"), "x", secret)
    file["x"] = h5py.SoftLink("/hidden/x")


def external_as_an_axis_of_netcdf(file, secret):
    file["T"] = np.zeros(NUMBERS.shape)
    add_external(file, "x", secret)
    file["x"].make_scale("x")
    file["T"].dims[0].attach_scale(file["x"])


def external_as_a_table_of_pario(file, secret):
    own = file.create_group("pario")
    own.attrs.update({"format": 1, "about": "{}", "saved": ""})
    add_external(own, "arrays", secret)


def virtual_by_an_absolute_name(file, secret):
    add_virtual(file, "x", f"{secret}.h5")


def virtual_by_a_name_above(file, secret):
    add_virtual(file, "x", f"../{secret.parent.name}/secret.h5")


def virtual_in_a_group(file, secret):
    add_virtual(file.create_group("a"), "x", f"{secret}.h5")


def virtual_of_a_virtual_one(file, secret):
    add_virtual(file, "hidden", f"{secret}.h5")
    add_virtual(file, "x", ".", "hidden")


def virtual_as_a_table_of_pario(file, secret):
    own = file.create_group("pario")
    own.attrs.update({"format": 1, "about": "{}", "saved": ""})
    add_virtual(own, "arrays", f"{secret}.h5")


def virtual_of_a_sibling_with_external_data(file, secret):
    with h5py.File(Path(file.filename).with_name("sibling.h5"), "w") as sibling:
        add_external(sibling, "x", secret)
    add_virtual(file, "x", "sibling.h5")


def virtual_of_a_sibling_through_its_link(file, secret):
    with h5py.File(Path(file.filename).with_name("sibling.h5"), "w") as sibling:
        sibling["x"] = h5py.ExternalLink(f"{secret}.h5", "x")
    add_virtual(file, "x", "sibling.h5")


def virtual_of_a_sibling_of_a_sibling(file, secret):
    with h5py.File(Path(file.filename).with_name("next.h5"), "w") as last:
        add_virtual(last, "x", f"{secret}.h5")
    with h5py.File(Path(file.filename).with_name("sibling.h5"), "w") as sibling:
        add_virtual(sibling, "x", "next.h5")
    add_virtual(file, "x", "sibling.h5")


def virtual_of_a_file_that_is_only_where_the_user_is(file, secret):
    """HDF5 looks for a missing source in the working directory."""
    os.chdir(secret.parent)
    add_virtual(file, "x", "secret.h5")


def virtual_by_a_pattern(file, secret):
    (secret.parent / "0.h5").write_bytes(secret.with_suffix(".h5").read_bytes())
    Path(file.filename).with_name("%b.h5").write_bytes(b"")
    os.chdir(secret.parent)
    layout = h5py.VirtualLayout((1, *NUMBERS.shape), "u1", maxshape=(None, *NUMBERS.shape))
    layout[: h5py.h5s.UNLIMITED, :] = h5py.VirtualSource("%b.h5", "x", NUMBERS.shape)
    file.create_virtual_dataset("x", layout)


def link_in_the_root(file, secret):
    file["x"] = h5py.ExternalLink(f"{secret}.h5", "x")


def link_in_a_group(file, secret):
    file["a/x"] = h5py.ExternalLink(f"{secret}.h5", "x")


def link_behind_a_soft_link(file, secret):
    file["a/hidden"] = h5py.ExternalLink(f"{secret}.h5", "x")
    file["x"] = h5py.SoftLink("/a/hidden")


def link_in_place_of_a_table(file, secret):
    own = file.create_group("pario")
    own.attrs.update({"format": 1, "about": "{}", "saved": ""})
    own["arrays"] = h5py.ExternalLink(f"{secret}.h5", "x")


def link_in_place_of_the_tables(file, secret):
    with h5py.File(f"{secret}.h5", "r+") as other:
        own = other.create_group("pario")
        own.attrs.update(
            {"format": 1, "about": json.dumps({"hosts": [SECRET.decode()]}), "saved": ""}
        )
        for name in ("arrays", "blocks", "checksums"):
            own[name] = np.frombuffer(b"[]", np.uint8)
    file["pario"] = h5py.ExternalLink(f"{secret}.h5", "pario")


HOSTILE = [
    external_in_the_root,
    external_by_a_relative_name,
    external_in_a_group,
    external_through_a_soft_link,
    external_as_an_axis_of_netcdf,
    external_as_a_table_of_pario,
    virtual_by_an_absolute_name,
    virtual_by_a_name_above,
    virtual_in_a_group,
    virtual_of_a_virtual_one,
    virtual_as_a_table_of_pario,
    virtual_of_a_sibling_with_external_data,
    virtual_of_a_sibling_through_its_link,
    virtual_of_a_sibling_of_a_sibling,
    virtual_of_a_file_that_is_only_where_the_user_is,
    virtual_by_a_pattern,
    link_in_the_root,
    link_in_a_group,
    link_behind_a_soft_link,
    link_in_place_of_a_table,
    link_in_place_of_the_tables,
]


@pytest.fixture
def hostile(request, here, secret, monkeypatch):
    monkeypatch.chdir(here)  # some cases change the working directory
    with h5py.File(here / "step-00000001.h5", "w") as file:
        file["harmless"] = np.arange(3)
        request.param(file, secret)
    return here / "step-00000001.h5"


@pytest.mark.parametrize("hostile", HOSTILE, indirect=True, ids=lambda make: make.__name__)
def test_a_file_that_names_other_files_is_refused(hostile):
    shown = b""
    with pytest.raises(CheckpointError) as refused:
        state = load(None, hostile)
        for name in state:
            shown += state[name].tobytes()
        shown += json.dumps(state.about).encode()
    assert SECRET not in shown
    assert SECRET.decode() not in str(refused.value) and str(hostile.parent) in str(refused.value)


@pytest.mark.parametrize(
    "hostile",
    [external_in_the_root, virtual_by_an_absolute_name, link_in_the_root],
    indirect=True,
    ids=lambda make: make.__name__,
)
@pytest.mark.parametrize("action", ["show", "verify", "diff"])
def test_every_command_refuses_them(hostile, action, capfd):
    other = [str(hostile)] if action == "diff" else []
    assert main(["checkpoint", action, str(hostile), *other]) == 2
    assert "'x'" in capfd.readouterr().err


def test_the_newest_file_that_is_refused_is_skipped(here, secret):
    with Writer(None, here, durable=False) as writer:
        for step in (0, 1):
            writer.save(step, {"x": np.arange(4)})
    with h5py.File(here / "step-00000001.h5", "w") as file:
        add_external(file, "x", secret)
    with pytest.warns(UserWarning, match="array 'x'"):
        assert load(None, here).step == 0


def test_a_master_reads_no_files_but_parts(here, secret):
    """pario reads parts without HDF5, so it has to check itself that a file is a part."""
    with Writer(None, here, durable=False, files="rank") as writer:
        master = (
            writer.save(
                1,
                {
                    "x": block(NUMBERS, NUMBERS.shape, (0,)),
                    "large": block(np.zeros(1 << 23), (1 << 23,), (0,)),
                },
            )
            / "master.h5"
        )
    (master.parent / "notes").write_bytes(SECRET * (1 << 20))
    with h5py.File(master, "r+") as file:
        del file["pario/parts"]
        parts = json.dumps([["notes", len(SECRET)]]).encode()
        file["pario"].create_dataset("parts", data=np.frombuffer(parts, np.uint8))
    with pytest.raises(CheckpointError, match=r"'notes'.*expected part-00000\.h5"):
        load(None, master, verify=False)


def test_virtual_datasets_of_files_beside_them_are_read(here):
    with h5py.File(here / "half.h5", "w") as file:
        file["x"] = NUMBERS
    with h5py.File(here / "whole.h5", "w") as file:
        add_virtual(file, "x", "half.h5")
        add_virtual(file, "again", ".", "x")
        file["soft"] = h5py.SoftLink("/x")
    state = load(None, here / "whole.h5")
    assert (state["x"] == NUMBERS).all() and (state["again"] == NUMBERS).all()


def test_only_one_module_opens_hdf5_files():
    """Other modules could read files that a hostile file names without a check."""
    found = []
    for path in sorted(Path(pario.__file__).parent.rglob("*.py")):
        if "h5py" not in (source := path.read_text()):
            continue
        calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
        found += [path.name for call in calls if ast.unparse(call.func).endswith("h5py.File")]
    assert found == ["hdf5.py"] * 2  # one call reads a file, the other makes one in memory

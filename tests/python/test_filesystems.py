"""The Python table of file systems agrees with the native table (src/core/layout/layout.def)."""

from __future__ import annotations

import string

import pytest

from pario import _native, filesystems
from pario.filesystems import ROWS


def test_each_native_kind_has_one_row():
    assert sorted(row.kind for row in ROWS) == sorted(
        kind for kind, _ in _native.file_system_names()
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nfs4", "nfs"),
        ("fuse.lustre", "lustre"),
        ("fuse.ceph-fuse", "ceph_fuse"),
        ("pvfs2", "pvfs"),
        ("ext4", "unknown"),
    ],
)
def test_a_mount_belongs_to_a_kind(name, kind):
    assert filesystems.of_mount(name).kind == kind


@pytest.mark.parametrize(
    ("name", "network"),
    [("lustre", True), ("dvs", True), ("fuse.sshfs", True), ("ext4", False), ("tmpfs", False)],
)
def test_remote_file_systems_are_known(name, network):
    assert filesystems.is_network(name) is network


def test_unknown_kinds_have_the_row_of_unknown():
    assert filesystems.of_kind("zzz") is filesystems.of_kind("unknown")


def test_layout_attributes_name_their_kind():
    assert filesystems.kind_of_attribute("lustre.lov") == "lustre"
    assert filesystems.kind_of_attribute("ceph.dir.layout") == "ceph"
    assert filesystems.kind_of_attribute("user.layout") == ""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.kind)
def test_templates_have_known_fields_only(row):
    fields = {
        field
        for template in (row.stripe, row.unstripe)
        for _, field, _, _ in string.Formatter().parse(template)
        if field
    }
    assert fields <= {"directory", "count", "mebibytes"}
    assert {name for _, name, _, _ in string.Formatter().parse(row.quota) if name} <= {
        "mount",
        "source",
    }


def test_settable_kinds_have_commands():
    from pario.fix.stripe.commands import commands
    from pario.fix.stripe.layout import Wanted

    for row in ROWS:
        assert bool(commands(row.kind, "/d", True, Wanted())) == row.settable


def test_a_directory_with_blanks_is_one_word():
    words = filesystems.shell_words(filesystems.of_kind("lustre").stripe, "/a b", 8, 4)
    assert words == ("lfs", "setstripe", "-c", "8", "-S", "4M", "/a b")

"""Settings for files that take long to open: software on a network file system, and the small files
of a DataLoader."""

from __future__ import annotations

import pytest

from pario.see.analyze import analyze
from pario.see.tables.model import LoaderUse
from tests.python import layer_jobs
from tests.python.jobs import add_record
from tests.python.rule_cases import job


def test_the_directory_of_software_is_cached() -> None:
    made = job(8, kind="lustre")
    layer_jobs.import_modules(made, 8)
    settings = analyze(made).findings[0].settings
    assert [(one.key, one.value) for one in settings] == [
        ("cached_trees", "/scratch/env/lib/python3.12")
    ]


@pytest.mark.parametrize("kind", ["DataLoader", "Keras"])
def test_files_of_a_data_loader_are_read_ahead(kind: str) -> None:
    made = job()
    paths = [f"/scratch/d/{number}" for number in range(1000)]
    counts = {"opens": 1, "reads": 1, "bytes_read": 99}
    add_record(made, 0, paths, **counts, open_time=0.03, read_time=1e-5)
    made.loaders = [LoaderUse(0, kind, "Images", 2, 32, processors=8, batches=100)]
    settings = analyze(made).findings[0].settings
    assert [one.key for one in settings] == (["loader_ahead"] if kind == "DataLoader" else [])

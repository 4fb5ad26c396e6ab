"""Files of many records: read by number, at random or in batches (``docs/records.md``), and loaded
for training (``docs/training.md``).

Examples
--------
>>> from pathlib import Path
>>> from pario.records import Dataset, Loader
>>> _ = Path("train.jsonl").write_text('{"x": 1}\\n{"x": 2}\\n{"x": 3}\\n')
>>> dataset = Dataset("train.jsonl")
>>> len(dataset), bytes(dataset[0])
(3, b'{"x": 1}')
>>> loader = Loader(dataset, batch_size=2, shuffle=True, seed=1)
>>> sorted(bytes(record) for batch in loader for record in batch)
[b'{"x": 1}', b'{"x": 2}', b'{"x": 3}']
"""

from pario.records.batch import Batch
from pario.records.dataset import Dataset
from pario.records.devices import OnDevice, prefetch_to_device
from pario.records.loader import Loader
from pario.records.mixture import Mixture
from pario.records.stats import LoaderStats

__all__ = [
    "Batch",
    "Dataset",
    "Loader",
    "LoaderStats",
    "Mixture",
    "OnDevice",
    "prefetch_to_device",
]

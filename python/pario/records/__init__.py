"""Files of many records: read by number, at random or in batches (``docs/records.md``), and loaded for training (``docs/training.md``).

>>> from pario.records import Dataset, Loader
>>> dataset = Dataset("train.prec")
>>> len(dataset), bytes(dataset[0]), dataset.name(0)
>>> loader = Loader(dataset, batch_size=32, shuffle=True, seed=1)
"""

from pario.records.batch import Batch
from pario.records.dataset import Dataset
from pario.records.loader import Loader, LoaderStats

__all__ = ["Batch", "Dataset", "Loader", "LoaderStats"]

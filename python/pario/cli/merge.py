"""Merge one file of each process into one file.

`pario merge PART... -o OUT` concatenates the parts. With --grid they hold blocks of an array,
which become one dataset of an HDF5 file: `pario merge 'out.{rank}.npy' --grid 2x3x1 -o out.h5`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.arguments import add_count, add_flag, add_output, add_value
from pario.cli.numbers import shape
from pario.cli.paths import path_text
from pario.errors import ParioError
from pario.messages import print_note
from pario.progress import show_progress

if TYPE_CHECKING:
    from pario.move.merge import Block


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario merge``."""
    parser.add_argument(
        "parts",
        nargs="+",
        type=path_text,
        metavar="PART",
        help="files in order, or one name with {rank} for the number of the process",
    )
    add_output(parser, "OUT", "a new file", path_text, required=True)
    parser.add_argument(
        "--grid",
        type=shape,
        metavar="PxQxR",
        help="processes along each axis: the parts are blocks of an array",
    )
    add_flag(parser, "--fortran-grid", "ranks run along the first axis first")
    add_value(
        parser, "--dataset", str, "NAME", "of the array in the HDF5 file (default: data)", "data"
    )
    parser.add_argument(
        "--block",
        type=shape,
        metavar="XxYxZ",
        help="parts are raw elements of blocks of this shape, not .npy",
    )
    parser.add_argument(
        "--dtype",
        metavar="TYPE",
        help="with --block: their type as numpy has it, such as f8 or <f4",
    )
    add_flag(parser, "--fortran", "with --block: the first axis is the fastest in the parts")
    add_count(parser, "--threads", 4, "default 4")


def run(arguments: argparse.Namespace) -> int:
    """Concatenates, or assembles."""
    from pario.move.merge import Mosaic, assemble, concatenate, parts_of

    output = Path(arguments.output)
    for option in ("block", "dtype", "fortran", "fortran_grid"):
        if getattr(arguments, option, None) and not arguments.grid:
            raise ParioError(
                f"--{option.replace('_', '-')} belongs to --grid: parts without it are concatenated"
            )
    with show_progress(arguments.output) as show:
        parts = (
            parts_of(arguments.parts[0])
            if len(arguments.parts) == 1
            else [Path(part) for part in arguments.parts]
        )
        if not arguments.grid:
            size = concatenate(parts, output, arguments.threads, show)
            what = wording.size(size)
        else:
            mosaic = Mosaic.of(
                [_block(part, arguments) for part in parts], arguments.grid, arguments.fortran_grid
            )
            assemble(mosaic, output, arguments.dataset, arguments.threads, show)
            what = f"{arguments.dataset}: {' x '.join(map(str, mosaic.shape))} {mosaic.dtype}"
    print_note(f"{arguments.output}: {wording.plural(len(parts), 'part')}, {what}")
    return 0


def _block(path: Path, arguments: argparse.Namespace) -> Block:
    import numpy as np

    from pario.move.merge import Block

    if not arguments.block:
        return Block.of_npy(path)
    try:
        return Block.of_raw(
            path, np.dtype(arguments.dtype or ""), arguments.block, arguments.fortran
        )
    except TypeError as error:
        raise ParioError(f"--dtype {arguments.dtype}: {error}") from error

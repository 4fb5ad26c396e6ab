"""The native core (src/bindings)."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

from numpy.typing import NDArray
from typing_extensions import Buffer

_Numbers = tuple[int, ...]
_Box = tuple[int, int, _Numbers, _Numbers, _Numbers, int, _Numbers]

def create_directory_part(target: bytes, mode: int, temporary: bool) -> tuple[bytes, int]: ...
def create_part(target: bytes) -> tuple[bytes, int]: ...
def part_path(target: bytes) -> bytes: ...
def remove_stale_part(target: bytes) -> bool:
    """Removes the first temporary file of a target if no process has locked it. True if there is
    none now."""

class ObjectStore(Protocol):
    """Access to stores by any thread; errors are of type OSError."""

    def open(self, url: str, tail: int) -> tuple[int, int, str, Buffer]:
        """Size, nanoseconds since 1970, version (ETag), at most ``tail`` last bytes."""
    def read(self, url: str, version: str, size: int, begin: int, end: int) -> Buffer: ...
    def write(self, url: str, data: bytes) -> None: ...
    def remove(self, url: str) -> None: ...

def set_object_store(store: ObjectStore) -> None:
    """Sets the store that reads and writes URLs for this process, at the first call."""

class KeptObjects:
    """A context in which each object of a store is opened once."""

    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...

def replay_verbs() -> list[str]: ...

class ReplayPlayer:
    def __init__(self, paths: list[bytes], slots: int, largest: int) -> None: ...
    def use(self, functions: list[int], byte: int) -> None: ...
    def use_file(self, slot: int, file: int) -> None: ...
    def play(self, rows: NDArray[Any], with_pauses: bool) -> None: ...

def counter_table() -> list[tuple[str, str, str, str]]: ...
def process_table() -> list[tuple[str, str, str, str]]: ...
def op_table() -> list[tuple[str, str, str]]: ...
def layer_names() -> list[str]: ...
def size_bins() -> list[int]: ...
def mpiio_table() -> list[tuple[str, str]]: ...
def checksum(payload: NDArray[Any]) -> int: ...
def frame_events(frame: NDArray[Any]) -> int: ...
def decode_events(
    log: NDArray[Any],
    chunks: NDArray[Any],
    process: int,
    ticks0: int,
    seconds0: float,
    seconds_per_tick: float,
    functions: NDArray[Any],
    files: NDArray[Any],
    communicators: NDArray[Any],
    out: NDArray[Any],
) -> list[int]: ...
def permute_rows(rows: NDArray[Any], order: NDArray[Any]) -> None: ...
def check_variables(variables: list[str]) -> list[str]: ...

_Carrier = Literal["variable", "hint", "stream"]
_Hint = tuple[str, str, str, str, list[str], str, _Carrier, str, int, int, str, bool]

def hint_table() -> list[_Hint]: ...
def check_file_hint(key: str, value: str) -> str: ...
def check_stream_specifications(origin: str, specifications: str) -> list[str]: ...

class Comm:
    """Ranks whose messages Python transports: ``send(to, message)`` sends one, ``receive()``
    returns the next one as ``(from, message)``, or None if none has arrived; ``wait(seconds)``
    sleeps until one may have arrived, at most so long. Calls wait without the GIL."""

    def __init__(
        self,
        rank: int,
        size: int,
        send: Callable[[int, bytes], object],
        receive: Callable[[], tuple[int, bytes | bytearray] | None],
        wait: Callable[[float], object] | None = None,
    ) -> None: ...
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nodes(self) -> list[int]:
        """The node of each rank; each rank has its own before :meth:`introduce`."""

    def channel(self) -> int:
        """A new channel. All ranks make theirs in the same order."""

    def send(self, to: int, channel: int, data: bytes) -> None: ...
    def receive(
        self,
        channel: int,
        source: int,
        begin: float,
        patience: float,
        check: Callable[[], object],
    ) -> tuple[int, bytes] | None:
        """The next message of a rank, or of any (``source=-1``). None when ``patience`` seconds
        have passed since ``begin`` (``time.monotonic()``) and the latest keep-alive.

        ``check`` is called now and then and may raise. Raises ProcessLookupError if a rank has
        died."""

    def keep_alive(self, interval: float) -> None:
        """Sends a keep-alive; other nodes get one message in ``interval`` seconds at most."""

    def introduce(self, label: str, patience: float, check: Callable[[], object]) -> None:
        """Groups ranks with the same label as a node, and detects dead ranks from now on.
        Collective."""

    @property
    def can_open(self) -> bool:
        """False once a call on a file has ended without a rank: open() is an error then."""

    def open(
        self, path: bytes, writes: bool, node: bool, patience: float, opened: int
    ) -> SharedFile:
        """Opens a file for all ranks, or with ``node`` for those of this rank's node. Collective
        over them. ``patience``: seconds that ranks wait for each other in a call. ``opened``: a
        descriptor of the file, of which this rank uses a copy; -1: it has none."""

class SharedFile:
    """A file that ranks write or read together. All functions are collective, and raise the same
    OSError on all ranks.

    A box is a tuple: offset of the array in the file, bytes of an element, shape of the array,
    first element of the box, shape of the box, address of its first element, bytes between elements
    on each axis.
    """

    def write(self, boxes: Sequence[_Box]) -> int:
        """Writes boxes, any number on each rank. Returns the bytes of this rank."""

    def read(self, boxes: Sequence[_Box]) -> int:
        """Reads boxes; less where the file ends before."""

    def maximum(self, mine: int) -> int:
        """The largest number that a rank gives."""

    def close(self) -> None: ...

def open_alone(path: bytes, writes: bool) -> SharedFile: ...
def box_checksum(
    address: int,
    element: int,
    whole: list[int],
    begin: list[int],
    shape: list[int],
    strides: list[int],
) -> int: ...
def add_chunk_checksums(
    address: int,
    element: int,
    whole: list[int],
    begin: list[int],
    shape: list[int],
    strides: list[int],
    block: list[int],
    chunk: list[int],
    counts: list[int],
    first_chunk: int,
    sums: NDArray[Any],
) -> None: ...
def packed_checksums(data: bytes, boxes: NDArray[Any]) -> list[int]: ...

class Compressor:
    """Compresses elements to frames of zstd, in one thread at a time."""

    def __init__(self, level: int) -> None: ...
    def compress(self, elements: NDArray[Any], element: int) -> bytes:
        """The frame of elements of ``element`` bytes, given as bytes; 1: not shuffled."""

def decompress_elements(frame: NDArray[Any], element: int, out: NDArray[Any]) -> None:
    """Fills ``out``, bytes, with the elements of a frame. Raises ValueError for other bytes."""

def join(path: bytes, show: Callable[[int, int], object]) -> None: ...
def pack_directory(
    path: bytes,
    output: bytes,
    shard_size: int,
    shards: int,
    level: int,
    threads: int,
    show: Callable[[int, int], object],
) -> tuple[int, int, int, int]: ...
def open_archive(path: bytes) -> Archive: ...

class MemberStream:
    def next(self) -> bytes: ...

class Archive:
    @property
    def shards(self) -> int: ...
    def __len__(self) -> int: ...
    def member(self, number: int) -> tuple[bytes, bool, int, int, int, int]: ...
    def find(self, name: bytes) -> int: ...
    def read(self, number: int) -> bytes: ...
    def open_member(self, number: int) -> MemberStream: ...
    def verify_index(self) -> None: ...
    def verify_places(self) -> None: ...
    def unpack(
        self,
        output: bytes,
        members: list[int],
        threads: int,
        strict: bool,
        same_permissions: bool,
        special: bool,
        max_size: int | None,
        show: Callable[[int, int], object],
    ) -> tuple[int, int, list[tuple[str, int, str]]]: ...

_Part = tuple[int, int, int, int, int, str, bool, bool, list[int]]
_Stripes = tuple[str, bool, int, bytes, list[_Part], int]

def read_layout(attribute: bytes) -> tuple[int, int, list[int], str]: ...
def stripes_of(path: bytes) -> _Stripes: ...
def set_stripes(path: bytes, parts: list[_Part], object_size: int, mode: int) -> _Stripes: ...
def inherit_stripes(directory: bytes) -> None: ...
def target_count(directory: bytes) -> int: ...
def quotas_of(path: bytes) -> list[tuple[str, int, int, int, int]]: ...
def file_system_traits(kind: str) -> tuple[bool, bool, int]: ...
def direct_sizes_of_lustre(root: str) -> tuple[int, int]: ...
def file_system_names() -> list[tuple[str, list[str]]]: ...
def is_network_file_system(name: str) -> bool: ...
def stripe_rules() -> list[tuple[str, int, int, int, int, int, int, int, str]]: ...
def choose_stripes(
    size: int, writers: int, ranks: int, targets: int, files: int
) -> tuple[int, int, str, str]: ...
def compare_with_measured(
    measured_size: int, measured_writers: int, size: int, writers: int
) -> float: ...

_Show = Callable[[int, int], object]

def record_formats() -> list[tuple[str, str, str, bool]]: ...
def guess_record_format(path: bytes) -> str: ...

class RecordRanks(Protocol):
    """The ranks that carry out one call together; ``gather`` is called by the caller's thread, and
    not if there is one rank."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    def gather(self, mine: bytes) -> list[bytes]:
        """Sends the bytes of each rank to all ranks. Collective."""

#: Of records without an index: format, bytes of each, whether an incomplete last one is left out,
#: lengths, reaction to damage.
_Form = tuple[str, int, bool, NDArray[Any], str]
#: Inputs, format, outputs, seed, memory, temporary directory, threads, way, compression.
_Shuffle = tuple[list[bytes], str, list[bytes], int, int, bytes, int, str, bool]

def write_record_index(
    path: bytes, form: _Form, threads: int, update: bool, show: _Show, ranks: RecordRanks
) -> tuple[int, int, bytes]: ...
def find_record_index(path: bytes) -> bytes: ...
def write_record_groups(
    path: bytes, format: str, begins: NDArray[Any], firsts: NDArray[Any]
) -> tuple[int, bytes]: ...
def read_record_groups(path: bytes) -> tuple[str, NDArray[Any], NDArray[Any], int]: ...
def explain_shuffle(asked: _Shuffle, ranks: int) -> str: ...
def shuffle_records(
    asked: _Shuffle, damaged: str, show: _Show, ranks: RecordRanks
) -> tuple[int, int, str, int, str]: ...
def pack_records(
    directory: bytes,
    output: bytes,
    shuffled: bool,
    seed: int,
    threads: int,
    show: _Show,
    ranks: RecordRanks,
) -> int: ...
def convert_records(
    inputs: list[bytes],
    outputs: list[bytes],
    format: str,
    damaged: str,
    show: _Show,
    ranks: RecordRanks,
) -> tuple[int, int, str]: ...
def measure_device(path: bytes, length: int) -> list[float]: ...

class RecordFile:
    format: str
    index_bytes: int
    bucketing: tuple[int, int] | None
    def __len__(self) -> int: ...
    def read(self, record: int) -> tuple[bytes, int, int]: ...
    def offsets(self, first: int, last: int) -> NDArray[Any]: ...
    def attributes(self, record: int) -> tuple[bytes, int, int]: ...
    def verify(self, threads: int, most: int, show: _Show) -> list[tuple[int, str]]: ...
    def keep_blocks(self) -> None: ...

def open_objects(urls: list[bytes]) -> None: ...
def describe_block_cache() -> tuple[bytes, int, int] | None: ...
def open_records(path: bytes, verify: bool) -> RecordFile: ...
def scan_records(path: bytes, form: _Form, threads: int) -> tuple[RecordFile, bool, str]: ...

_Order = tuple[str, int, int, int, int]
_Share = tuple[int, int, int, int, int, int, str]

class RecordLoader:
    def next(
        self,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], list[tuple[int, str]], int] | None: ...
    def wants_batch(self) -> bool: ...
    def give(self, numbers: NDArray[Any], end: int) -> None: ...
    def end_giving(self) -> None: ...
    def threads(self) -> int: ...

class RecordOrder:
    def __init__(self, order: _Order, files: NDArray[Any], groups: NDArray[Any]) -> None: ...
    def numbers(self, first: int, last: int) -> NDArray[Any]: ...
    def turn(self, position: int) -> tuple[int, int, list[int]]: ...

def schedule_step(share: _Share, count: int, number: int) -> tuple[int, int, int]: ...
def schedule_steps(share: _Share, count: int) -> int: ...
def start_loader(
    datasets: list[RecordFile],
    order: _Order,
    share: _Share,
    memory: int,
    threads: int,
    direct: bool,
) -> RecordLoader: ...
def start_number_loader(
    datasets: list[RecordFile], memory: int, threads: int, direct: bool
) -> RecordLoader: ...
def read_records(
    dataset: RecordFile, numbers: NDArray[Any], threads: int, skip: bool
) -> tuple[NDArray[Any], NDArray[Any], list[tuple[int, str]]]: ...

_Flow = tuple[int, int, int, int, int, int, int, int, int]
_Phase = tuple[bool, list[_Flow], int, int, int, bool]
_Machine = list[tuple[str, float]]

def time_way(
    path: bytes, way: tuple[str, int, int, bool, bool], work: tuple[bool, bool, bool, int, float]
) -> tuple[float, int, int]: ...
def resident(path: bytes) -> float: ...
def model_parameters() -> list[str]: ...
def model_kinds() -> list[str]: ...
def model_cost(
    machine: _Machine, phase: _Phase
) -> tuple[float, float, float, float, float, str]: ...
def model_turns(
    machine: _Machine, writes: bool, clients: list[list[tuple[int, int]]]
) -> tuple[float, int]: ...
def model_call(
    job: tuple[int, int, str, int, int],
    writes: bool,
    collective: bool,
    type: str,
    places: list[int],
    settings: list[tuple[str, str]],
) -> tuple[_Phase, str]: ...

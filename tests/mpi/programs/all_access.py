"""Calls every data access routine of MPI-IO once and checks each by reading back with another one.

Argument: a directory.
"""

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.rank, COMM.size
N = 1000
MODE = MPI.MODE_CREATE | MPI.MODE_RDWR


def mine(salt: int) -> np.ndarray:
    return np.arange(N, dtype="i4") + RANK * N + salt


def all_ranks(salt: int) -> np.ndarray:
    return np.arange(N * SIZE, dtype="i4") + salt


def open_view(path: Path) -> MPI.File:
    file = MPI.File.Open(COMM, str(path), MODE | MPI.MODE_DELETE_ON_CLOSE)
    file.Set_view(0, MPI.INT, MPI.INT)
    return file


def expect(file: MPI.File, salt: int, ordered: bool = True) -> None:
    file.Sync()
    COMM.Barrier()
    found = np.zeros(N * SIZE, "i4")
    status = MPI.Status()
    file.Read_at(0, found, status)
    assert status.Get_count(MPI.INT) == N * SIZE, status.Get_count(MPI.INT)
    if not ordered:
        found = found.reshape(SIZE, N)[np.argsort(found[::N])].reshape(-1)
    assert (found == all_ranks(salt)).all(), (salt, found)
    COMM.Barrier()


def check_writes(file: MPI.File) -> None:
    place = RANK * N
    writes = {
        "Write_at": lambda data: file.Write_at(place, data),
        "Write_at_all": lambda data: file.Write_at_all(place, data),
        "Iwrite_at": lambda data: file.Iwrite_at(place, data).Wait(),
        "Iwrite_at_all": lambda data: file.Iwrite_at_all(place, data).Wait(),
        "Write_at_all_begin": lambda data: (
            file.Write_at_all_begin(place, data),
            file.Write_at_all_end(data),
        ),
    }
    pointer = {
        "Write": lambda data: file.Write(data),
        "Write_all": lambda data: file.Write_all(data),
        "Iwrite": lambda data: file.Iwrite(data).Wait(),
        "Iwrite_all": lambda data: file.Iwrite_all(data).Wait(),
        "Write_all_begin": lambda data: (file.Write_all_begin(data), file.Write_all_end(data)),
    }
    shared = {
        "Write_shared": lambda data: file.Write_shared(data),
        "Iwrite_shared": lambda data: file.Iwrite_shared(data).Wait(),
        "Write_ordered": lambda data: file.Write_ordered(data),
        "Write_ordered_begin": lambda data: (
            file.Write_ordered_begin(data),
            file.Write_ordered_end(data),
        ),
    }
    for salt, (name, write) in enumerate({**writes, **pointer, **shared}.items()):
        file.Seek(place)
        file.Seek_shared(0)
        write(mine(salt))
        expect(file, salt, ordered=name not in ("Write_shared", "Iwrite_shared"))
        if name in pointer:
            assert file.Get_position() == place + N, name
        if name in shared:
            assert file.Get_position_shared() == N * SIZE, name


def check_reads(file: MPI.File) -> None:
    place = RANK * N
    file.Write_at_all(place, mine(7))
    file.Sync()
    COMM.Barrier()

    def begin_end(begin: str, end: str, *arguments: int):
        return lambda data: (getattr(file, begin)(*arguments, data), getattr(file, end)(data))

    reads = {
        "Read_at": lambda data: file.Read_at(place, data),
        "Read_at_all": lambda data: file.Read_at_all(place, data),
        "Iread_at": lambda data: file.Iread_at(place, data).Wait(),
        "Iread_at_all": lambda data: file.Iread_at_all(place, data).Wait(),
        "Read_at_all_begin": begin_end("Read_at_all_begin", "Read_at_all_end", place),
        "Read": lambda data: file.Read(data),
        "Read_all": lambda data: file.Read_all(data),
        "Iread": lambda data: file.Iread(data).Wait(),
        "Iread_all": lambda data: file.Iread_all(data).Wait(),
        "Read_all_begin": begin_end("Read_all_begin", "Read_all_end"),
        "Read_ordered": lambda data: file.Read_ordered(data),
        "Read_ordered_begin": begin_end("Read_ordered_begin", "Read_ordered_end"),
    }
    for name, read in reads.items():
        found = np.zeros(N, "i4")
        file.Seek(place)
        file.Seek_shared(0)
        read(found)
        assert (found == mine(7)).all(), (name, found)
    for name in ("Read_shared", "Iread_shared"):
        found = np.zeros(N, "i4")
        file.Seek_shared(0)
        request = getattr(file, name)(found)
        if request:
            MPI.Request.Waitall([request])
        firsts = sorted(COMM.allgather(int(found[0])))
        assert firsts == [rank * N + 7 for rank in range(SIZE)], (name, firsts)


def check_views(file: MPI.File) -> None:
    """Each rank accesses columns of a matrix."""
    column = MPI.INT.Create_vector(N, 1, SIZE).Commit()
    filetype = column.Create_resized(0, 4 * SIZE * N).Commit()
    file.Set_view(4 * RANK, MPI.INT, filetype)
    file.Write_all(mine(3))
    found = np.zeros(N, "i4")
    file.Read_at_all(0, found)
    assert (found == mine(3)).all()
    assert file.Get_byte_offset(1) == 4 * RANK + 4 * SIZE
    assert file.Get_view()[0] == 4 * RANK
    file.Set_view(0, MPI.INT, MPI.INT)
    whole = np.zeros(N * SIZE, "i4")
    file.Read_at_all(0, whole)
    assert (whole.reshape(N, SIZE)[:, RANK] == mine(3)).all()
    file.Set_view(0, MPI.INT, MPI.INT, "external32")
    file.Write_at_all(RANK * N, mine(9))
    file.Read_at_all(RANK * N, found)
    assert (found == mine(9)).all()
    file.Set_view(0, MPI.BYTE, MPI.BYTE)
    raw = np.zeros(N, ">i4")
    file.Read_at_all(RANK * N * 4, [raw, MPI.BYTE])
    assert (raw == mine(9)).all()
    for kind in (column, filetype):
        kind.Free()


def check_facts(file: MPI.File) -> None:
    file.Set_view(0, MPI.BYTE, MPI.BYTE)
    file.Set_size(100)
    assert file.Get_size() == 100
    file.Seek(0, MPI.SEEK_END)
    assert file.Get_position() == 100
    found = np.zeros(60, "u1")
    status = MPI.Status()
    file.Read_at(70, found, status)
    assert status.Get_count(MPI.BYTE) == 30, status.Get_count(MPI.BYTE)
    file.Preallocate(200)
    assert file.Get_size() == 200
    assert file.Get_amode() & MPI.MODE_RDWR
    assert file.Get_group().Get_size() == SIZE
    file.Set_atomicity(True)
    assert file.Get_atomicity()
    file.Set_atomicity(False)
    assert file.Get_info().Get("cb_buffer_size")
    assert MPI.File.f2py(file.py2f()) == file
    assert file.Get_errhandler() == MPI.ERRORS_RETURN


def error_class(call) -> int:
    try:
        call()
    except MPI.Exception as error:
        return error.Get_error_class()
    return MPI.SUCCESS


def check_errors(directory: Path) -> None:
    missing = str(directory / "missing")
    assert (
        error_class(lambda: MPI.File.Open(COMM, missing, MPI.MODE_RDONLY)) == MPI.ERR_NO_SUCH_FILE
    )
    assert (
        error_class(lambda: MPI.File.Open(COMM, missing, MPI.MODE_RDONLY | MPI.MODE_RDWR))
        == MPI.ERR_AMODE
    )
    assert error_class(lambda: MPI.File.Delete(missing)) == MPI.ERR_NO_SUCH_FILE
    file = open_view(directory / "errors")
    assert error_class(lambda: file.Seek(-1)) == MPI.ERR_ARG
    assert error_class(lambda: file.Read_at(-1, np.zeros(1, "i4"))) == MPI.ERR_ARG
    assert (
        error_class(lambda: file.Set_view(0, MPI.INT, MPI.INT, "strange"))
        == MPI.ERR_UNSUPPORTED_DATAREP
    )
    file.Close()


def main() -> None:
    directory = Path(sys.argv[1])
    for check in (check_writes, check_reads, check_views, check_facts):
        file = open_view(directory / check.__name__)
        check(file)
        file.Close()
    check_errors(directory)
    COMM.Barrier()
    if RANK == 0:
        print("all good")


main()

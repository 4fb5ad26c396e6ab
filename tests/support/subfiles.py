"""Files that consist of subfiles."""

from pathlib import Path


def write_subfiles(path: Path, data: bytes, unit: int, files: int) -> None:
    """Writes a file as pario's MPI-IO writes it with subfiles that are not joined, mode 640."""
    path.touch(mode=0o640)
    directory = path.with_name(f"{path.name}.subfiles")
    directory.mkdir()
    (directory / "map").write_text(f"pario subfiles 1\nfiles {files}\nunit {unit}\n")
    units = [data[at : at + unit] for at in range(0, len(data), unit)]
    for number in range(files):
        (directory / str(number)).write_bytes(b"".join(units[number::files]))

"""Stores of objects: obstore's, and fsspec's file systems for all other schemes."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: Makes the new bytes of an object of its bytes; None: there is none.
Change = Callable[[bytes | None], bytes]

#: Schemes of obstore.
_OBSTORE = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl", "http", "https")
#: Variables of obstore with the endpoint of a service, the first one that counts before others.
_ENDPOINTS = {
    "AWS": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "AZURE": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
#: The begin of versions of objects that have no ETag.
_BY_TIME = "time "
#: The times of objects in fsspec, by the names of its file systems.
_TIMES = ("LastModified", "last_modified", "mtime", "modificationTime", "modify", "created")
#: Texts of servers about credentials that have expired.
_EXPIRED = ("ExpiredToken", "TokenRefreshRequired", "token has expired", "AuthenticationFailed")
#: Texts of errors of stores without conditional requests: of servers, and of obstore for an object
#: without a version.
_NO_CONDITIONS = ("501 Not Implemented", "NotImplemented", "ersion required", "ETag required")
#: Bytes of a part of an upload, and the parts that are sent at the same time.
PART, _PARTS = 16 << 20, 4
#: Most parts of an object, by the rules of S3.
_MOST_PARTS = 10_000
#: A request is repeated for a minute, after pauses of 0.1 s at first.
_RETRIES = {
    "max_retries": 8,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {
        "init_backoff": timedelta(seconds=0.1),
        "max_backoff": timedelta(seconds=10),
        "base": 2,
    },
}


class Store(Protocol):
    """A bucket, container or server. Any thread may use it; errors are of type OSError."""

    def open(self, name: str, tail: int) -> tuple[int, int, str, Buffer]:
        """Size, nanoseconds since 1970, version, and at most ``tail`` last bytes."""

    def read(self, name: str, version: str, size: int, begin: int, end: int) -> Buffer:
        """A range of this version of an object."""

    def write(self, name: str, data: bytes) -> None:
        """Writes a whole object."""

    def update(self, name: str, change: Change) -> None:
        """Replaces an object by the bytes that ``change`` makes of its bytes, or of None if there
        is none. OSError ESTALE: another program has replaced it meanwhile, where the store knows
        conditional requests; else the last one wins."""

    def upload(self, name: str, path: str) -> None:
        """Writes a local file as an object, in parts and bounded memory."""

    def remove(self, name: str) -> None:
        """Removes an object."""


def open_store(root: str) -> Store:
    """The store of ``scheme://place``. Raises OSError if its package is missing."""
    scheme = root.partition("://")[0]
    try:
        if scheme in _OBSTORE:
            return _Obstore(root)
        return _Hub(root) if scheme == "hf" else _Fsspec(root)
    except ImportError as error:
        package = _find_missing_package(scheme, error)
        raise OSError(
            errno.ENOSYS,
            f"reading {scheme}:// needs the package {package}: pip install {package}",
        ) from error
    except ValueError as error:
        raise OSError(errno.EINVAL, f"no store for {scheme}://: {error}") from error


def _find_missing_package(scheme: str, error: ImportError) -> str:
    """The package to install, by the error or its cause: that of fsspec has no name."""
    names = (getattr(one, "name", None) for one in (error, error.__cause__))
    package = "obstore" if scheme in _OBSTORE else "fsspec"
    return next((name.partition(".")[0] for name in names if name), package)


def part_bytes(size: int) -> int:
    """Bytes of each part of an upload of so many bytes. Pure."""
    return max(PART, -(-size // _MOST_PARTS))


def _nanoseconds(time: Any) -> int:
    seconds = time.timestamp() if isinstance(time, datetime) else time
    return int(seconds * 1e6) * 1000 if isinstance(seconds, int | float) else 0


def _version_error() -> OSError:
    return OSError(errno.ESTALE, "the object was changed after it was opened")


class _Obstore:
    """A store of obstore, which repeats failed requests with increasing pauses. Credentials and
    endpoints come from the environment, as obstore documents them; for S3 else from boto3, if that
    is installed."""

    def __init__(self, root: str) -> None:
        import obstore

        self._obstore, self._root, self._process = obstore, root, os.getpid()
        self._store = _make_obstore(root)
        self._has_conditions = True  # of requests that write, as far as is known

    def open(self, name: str, tail: int) -> tuple[int, int, str, Buffer]:
        with self._errors(name):
            try:
                found = self._obstore.get(self._store, name, options={"range": {"suffix": tail}})
                meta, data = found.meta, found.bytes()
            except (FileNotFoundError, PermissionError):
                raise
            except self._obstore.exceptions.BaseError as error:
                if _is_denied(error):
                    raise
                meta, data = self._open_twice(name, tail)
            return meta["size"], _nanoseconds(meta["last_modified"]), _version_of_meta(meta), data

    def _open_twice(self, name: str, tail: int) -> tuple[Any, Buffer]:
        """For empty objects, and stores without ranges that are counted from the end."""
        meta = self._obstore.head(self._store, name)
        begin = max(0, meta["size"] - tail)
        if not meta["size"]:
            return meta, b""
        options = {"range": (begin, meta["size"]), "if_match": meta["e_tag"]}
        return meta, self._obstore.get(self._store, name, options=options).bytes()

    def read(self, name: str, version: str, size: int, begin: int, end: int) -> Buffer:
        options: dict[str, Any] = {"range": (begin, end)}
        if not version.startswith(("W/", _BY_TIME)):
            options["if_match"] = version
        with self._errors(name):
            found = self._obstore.get(self._store, name, options=options)
            # Not every server knows If-Match.
            if _version_of_meta(found.meta) != version or found.meta["size"] != size:
                raise _version_error()
            data: Buffer = found.bytes()
            return data

    def write(self, name: str, data: bytes) -> None:
        with self._errors(name):
            self._obstore.put(self._store, name, data)

    def update(self, name: str, change: Change) -> None:
        with self._errors(name):
            content, mode = self._find(name)
            data = change(content)
            try:
                if self._has_conditions:
                    self._obstore.put(self._store, name, data, mode=mode)
                    return
            except self._obstore.exceptions.AlreadyExistsError as error:
                raise _version_error() from error
            except self._obstore.exceptions.BaseError as error:
                if not self._knows_no_conditions(error):
                    raise
                self._has_conditions = False  # the answer took the repetitions of a minute
            self._obstore.put(self._store, name, data)

    def _find(self, name: str) -> tuple[bytes | None, Any]:
        """The bytes of an object, and the mode of a request that replaces only these."""
        try:
            found = self._obstore.get(self._store, name)
        except FileNotFoundError:
            return None, "create"
        content, meta = bytes(found.bytes()), found.meta
        return content, {key: meta[key] for key in ("e_tag", "version") if meta.get(key)}

    def _knows_no_conditions(self, error: Exception) -> bool:
        """True if the store, or its server, answers that it knows no conditional requests."""
        return isinstance(error, self._obstore.exceptions.NotSupportedError) or any(
            one in str(error) for one in _NO_CONDITIONS
        )

    def upload(self, name: str, path: str) -> None:
        with self._errors(name):
            size = Path(path).stat().st_size
            self._obstore.put(
                self._store,
                name,
                Path(path),
                use_multipart=True if size > PART else None,
                chunk_size=part_bytes(size),
                max_concurrency=_PARTS,
            )

    def remove(self, name: str) -> None:
        with self._errors(name):
            self._obstore.delete(self._store, name)

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        """Converts the exceptions of obstore, which reads an empty name as a list of objects, and
        drops a slash at the end."""
        if not self._root.startswith("http") and (not name or name.endswith("/")):
            raise OSError(
                errno.EINVAL, "expected the name of an object, without a slash at its end"
            )
        if self._process != os.getpid():
            raise OSError(
                errno.ENOTSUP,
                f"{self._root} was opened before this process was forked, which obstore does not"
                " survive: expected multiprocessing_context='forkserver' or 'spawn'",
            )
        try:
            yield
        except FileNotFoundError as error:
            raise OSError(errno.ENOENT, _first_line(error)) from error
        except self._obstore.exceptions.PreconditionError as error:
            raise _version_error() from error
        except ValueError as error:  # of a name such as a/../b
            raise OSError(errno.EINVAL, _first_line(error)) from error
        except self._obstore.exceptions.NotSupportedError as error:
            raise OSError(errno.EOPNOTSUPP, _first_line(error)) from error
        except (PermissionError, self._obstore.exceptions.BaseError) as error:
            if _is_denied(error):
                raise OSError(errno.EACCES, _denial(error)) from error
            raise OSError(errno.EIO, _first_line(error)) from error


def _version_of_meta(meta: Any) -> str:
    """The version of an object of obstore: its time, where the server gives no ETag."""
    return str(meta["e_tag"] or f"{_BY_TIME}{_nanoseconds(meta['last_modified'])}")


def _make_obstore(root: str) -> Any:
    from obstore.store import HTTPStore, from_url

    if root.startswith("http"):
        return HTTPStore.from_url(
            root, client_options={"allow_http": True, "timeout": "120s"}, retry_config=_RETRIES
        )
    options: dict[str, Any] = {}
    if root.startswith("s3") and _needs_profile():
        from obstore.auth.boto3 import Boto3CredentialProvider

        options["credential_provider"] = Boto3CredentialProvider()
    return from_url(
        root,
        client_options={"allow_http": _has_plain_endpoint(root), "timeout": "120s"},
        retry_config=_RETRIES,
        **options,
    )


def _has_plain_endpoint(root: str) -> bool:
    """True if the environment names an endpoint without TLS for the service of this store."""
    if root.startswith("gs"):
        return _find_google_endpoint().startswith("http://")
    if not root.startswith("s3") and "AZURE_STORAGE_USE_EMULATOR" in os.environ:
        return True
    service = "AWS" if root.startswith("s3") else "AZURE"
    named = (os.environ.get(name, "") for name in _ENDPOINTS[service])
    return next((one for one in named if one), "").startswith("http://")


def _find_google_endpoint() -> str:
    """The endpoint in the environment, or in the service account that it names; or empty."""
    if endpoint := os.environ.get("GOOGLE_BASE_URL"):
        return endpoint
    key = os.environ.get("GOOGLE_SERVICE_ACCOUNT_KEY", "")
    path = os.environ.get("GOOGLE_SERVICE_ACCOUNT") or os.environ.get("GOOGLE_SERVICE_ACCOUNT_PATH")
    with suppress(OSError, ValueError, AttributeError):
        return str(json.loads(key or Path(path or "").read_text()).get("gcs_base_url") or "")
    return ""


def _needs_profile() -> bool:
    """True if the environment has no credentials for S3, so that those of a profile are needed."""
    if {"AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE"} & set(os.environ):
        return False
    named = os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")
    return "AWS_PROFILE" in os.environ or Path(named).expanduser().exists()


def _is_denied(error: BaseException) -> bool:
    text, kind = str(error), type(error).__name__
    return kind in ("PermissionDeniedError", "UnauthenticatedError") or any(
        one in text for one in _EXPIRED
    )


def _denial(error: BaseException) -> str:
    expired = any(one in str(error) for one in _EXPIRED)
    reason = "the credentials have expired; renew them" if expired else "access is denied"
    return f"{reason}: {_first_line(error)}"


def _first_line(error: BaseException) -> str:
    """The first line of an exception of obstore, which ends with the source of the error; the code
    of a server of S3 in place of the begin of its document, such as NoSuchBucket."""
    text = str(error)
    line = text.partition("\n")[0].strip()
    code = re.search(r"<Code>(\w+)</Code>", text)
    return line.partition("<?xml")[0] + code[1] if code else line.rstrip(":")


class _Fsspec:
    """A file system of fsspec."""

    def __init__(self, root: str) -> None:
        import fsspec

        self._files, self._root = fsspec.core.url_to_fs(root)[0], root

    def open(self, name: str, tail: int) -> tuple[int, int, str, Buffer]:
        with self._errors():
            facts = self._files.info(self._url(name))
            size = int(facts["size"] or 0)
            data = self._range(name, max(0, size - tail), size)
            return size, _nanoseconds(_time_of(facts)), _version_of(facts), data

    def read(self, name: str, version: str, size: int, begin: int, end: int) -> Buffer:
        """fsspec has no conditional requests: the version is compared after the bytes came."""
        with self._errors():
            data = self._range(name, begin, end)
            self._files.invalidate_cache(self._url(name))
            facts = self._files.info(self._url(name))
            if facts["size"] != size or _version_of(facts) != version:
                raise _version_error()
            return data

    def _range(self, name: str, begin: int, end: int) -> bytes:
        return bytes(self._files.cat_file(self._url(name), begin, end)) if begin < end else b""

    def write(self, name: str, data: bytes) -> None:
        with self._errors():
            self._files.pipe_file(self._url(name), data)

    def update(self, name: str, change: Change) -> None:
        """fsspec has no conditional requests."""
        content = None
        with suppress(FileNotFoundError):
            size, _, version, _ = self.open(name, 0)
            content = bytes(self.read(name, version, size, 0, size))
        self.write(name, change(content))

    def upload(self, name: str, path: str) -> None:
        with self._errors():
            self._files.put_file(path, self._url(name))

    def remove(self, name: str) -> None:
        with self._errors():
            self._files.rm_file(self._url(name))

    def _url(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise OSError(errno.ENOENT, error.strerror or str(error)) from error
        except PermissionError as error:
            raise OSError(errno.EACCES, _denial(error)) from error
        except NotImplementedError as error:
            raise OSError(errno.EOPNOTSUPP, str(error)) from error
        except OSError:
            raise
        except Exception as error:
            raise OSError(errno.EIO, f"{type(error).__name__}: {error}") from error


class _Hub(_Fsspec):
    """Repositories of Hugging Face's Hub. An object is read from the commit that had it when it was
    opened, so that later commits change no bytes. Its version is the hash of its content."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        import huggingface_hub

        self._hub = huggingface_hub
        self._api = huggingface_hub.HfApi(endpoint=self._files.endpoint, token=self._files.token)
        #: The commits of opened versions, by name and version.
        self._commits: dict[tuple[str, str], str] = {}

    def open(self, name: str, tail: int) -> tuple[int, int, str, Buffer]:
        with self._errors():
            place = self._files.resolve_path(self._url(name))
            if hasattr(place, "repo_id"):
                size, version = self._look(name, place)
                commit = self._commits[name, version]
                data = self._request(place, commit, max(0, size - tail), size)
                return size, 0, version, data
        return super().open(name, tail)  # a bucket, which has no commits

    def read(self, name: str, version: str, size: int, begin: int, end: int) -> Buffer:
        with self._errors():
            place = self._files.resolve_path(self._url(name))
            if hasattr(place, "repo_id"):
                known = (name, version) in self._commits
                if not known and self._look(name, place) != (size, version):
                    raise _version_error()
                return self._request(place, self._commits[name, version], begin, end)
        return super().read(name, version, size, begin, end)

    def _look(self, name: str, place: Any) -> tuple[int, str]:
        """Size and version of an object in the newest commit, which is remembered."""
        where = {"repo_type": place.repo_type}
        commit = self._api.repo_info(place.repo_id, revision=place.revision, **where).sha
        files = self._api.get_paths_info(
            place.repo_id, place.path_in_repo, revision=commit, **where
        )
        if not files or not isinstance(files[0], self._hub.hf_api.RepoFile):
            raise FileNotFoundError(errno.ENOENT, "no such file in the repository")
        version = str(files[0].blob_id)
        self._commits[name, version] = str(commit)
        return int(files[0].size), version

    def _request(self, place: Any, commit: str, begin: int, end: int) -> bytes:
        """A range of a file, by one request: the file objects of fsspec read 5 MiB ahead."""
        if begin >= end:
            return b""
        url = self._hub.hf_hub_url(
            place.repo_id,
            place.path_in_repo,
            repo_type=place.repo_type,
            revision=commit,
            endpoint=self._files.endpoint,
        )
        headers = self._hub.utils.build_hf_headers(token=self._files.token)
        headers["range"] = f"bytes={begin}-{end - 1}"
        answer = self._hub.utils.http_backoff("GET", url, headers=headers, timeout=120)
        self._hub.utils.hf_raise_for_status(answer)
        return bytes(answer.content)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with super()._errors():
                yield
        except self._hub.errors.HfHubHTTPError as error:
            status, line = error.response.status_code, _first_line(error)
            if status in (401, 403):
                raise OSError(errno.EACCES, _denial(error)) from error
            raise OSError(errno.ENOENT if status == 404 else errno.EIO, line) from error


def _time_of(facts: dict[str, Any]) -> Any:
    return next((facts[key] for key in _TIMES if facts.get(key)), None)


def _version_of(facts: dict[str, Any]) -> str:
    keys = ("ETag", "etag", "created", *_TIMES)
    return next((str(facts[key]) for key in keys if facts.get(key)), "")

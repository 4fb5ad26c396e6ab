"""Logs each request with the standard handler, which flushes each line."""

import logging

from work import compute, repaired, size


class BufferedHandler(logging.FileHandler):
    """Writes lines when the buffer of the file is full, and at the end."""

    def flush(self) -> None:
        """Leaves the lines in the buffer."""


kind = BufferedHandler if repaired else logging.FileHandler
handler = kind("requests.log", mode="w")
logger = logging.getLogger("requests")
logger.addHandler(handler)
logger.setLevel(logging.INFO)
for number in range(size):
    logger.info("request %d answered", number)
handler.close()
compute()
print(size, "requests")

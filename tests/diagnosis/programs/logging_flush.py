"""Logs each request with the standard handler, which flushes each line."""

import logging
import logging.handlers

from work import compute, repaired, size

handler: logging.Handler = logging.FileHandler("requests.log", mode="w")
if repaired:
    handler = logging.handlers.MemoryHandler(20_000, target=handler)
logger = logging.getLogger("requests")
logger.addHandler(handler)
logger.setLevel(logging.INFO)
for number in range(size):
    logger.info("request %d answered", number)
handler.close()
compute()
print(size, "requests")

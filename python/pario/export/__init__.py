"""Jobs for other tools: Perfetto timelines, Parquet tables, JSON (docs/export.md)."""

from pario.export.json import json
from pario.export.parquet import parquet
from pario.export.perfetto import perfetto

__all__ = ["json", "parquet", "perfetto"]

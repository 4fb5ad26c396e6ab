"""Jobs for other tools: Perfetto timelines, Parquet tables, JSON (docs/export.md)."""

from pario.see.export.json import json
from pario.see.export.parquet import parquet
from pario.see.export.perfetto import perfetto

__all__ = ["json", "parquet", "perfetto"]

"""Parses the settings file again whenever a setting is needed."""

import configparser

from work import compute, repaired, size


def read_settings() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read("settings.ini")
    return parser


settings = read_settings()
total = 0
for _ in range(size):
    if not repaired:
        settings = read_settings()
    total += settings.getint("run", "steps")
compute()
print(total, "steps")

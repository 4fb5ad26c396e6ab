#!/bin/sh
exec "$(dirname "$0")/hosts.sh" exec "$@"

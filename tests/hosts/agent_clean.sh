#!/bin/sh
# Runs the command with a clean environment instead of the launcher's, like sshd.
exec env -i PATH="$PATH" HOME="$HOME" "$(dirname "$0")/hosts.sh" exec "$@"

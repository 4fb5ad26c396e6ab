#!/bin/sh
# As sshd does: the other side gets a clean environment, not the launcher's.
exec env -i PATH="$PATH" HOME="$HOME" "$(dirname "$0")/hosts.sh" exec "$@"

#!/bin/bash
# Copies an image with dd in blocks of 64 bytes.
source "$(dirname "$0")/work.inc.sh"
if [ "$repaired" ]; then
  dd if=image.bin of=copy.bin bs=1M count=$((size * 64)) iflag=count_bytes status=none
else
  dd if=image.bin of=copy.bin bs=64 count="$size" status=none
fi
compute
echo "$size blocks"

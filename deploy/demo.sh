#!/bin/bash
# What `make demo` shows: a batch of 500 tickets becomes tickets.pdf, and other people's programs
# judge it. PNGs of its first pages are left beside it.
#
# usage: deploy/demo.sh PROGRAM
set -euo pipefail
cd "$(dirname "$0")/.."

readonly program=$1
readonly batch=fixtures/requests/opening-night-500.json
readonly keys=build/demo/signing-keys.json
readonly pdf=tickets.pdf
readonly pages_shown=3
readonly render_timeout_s=60 check_timeout_s=600

rm -f "$pdf" tickets-[0-9]*.png
mkdir -p build/demo
if [[ ! -s $keys ]]; then
    (umask 077 && "$program" keygen >"$keys.new" && mv "$keys.new" "$keys")
fi

started=$(date +%s%N)
timeout "$render_timeout_s" "$program" render --signing-keys "$keys" "$batch" -o "$pdf"
render_ms=$((($(date +%s%N) - started) / 1000000))

timeout "$check_timeout_s" tests/e2e/check_document.py "$program" "$keys" "$batch" "$pdf"
pdftoppm -q -r 150 -png -l "$pages_shown" "$pdf" tickets

echo
echo "$pdf: $(stat -c %s "$pdf") bytes, rendered in $render_ms ms with the start of the program"
ls tickets-[0-9]*.png

#!/bin/bash
# What `make demo` shows: the service starts on its defaults, is sent a batch of 500 tickets, promises
# the job, and hands out tickets.pdf, which other people's programs then judge. PNGs of its first
# pages are left beside it, and no process.
#
# usage: deploy/demo.sh PROGRAM
set -euo pipefail
cd "$(dirname "$0")/.."

readonly program=$1
readonly batch=fixtures/requests/opening-night-500.json
readonly data=build/demo/data
readonly keys=$data/development-signing-keys.json
readonly log=build/demo/serve.log
readonly pdf=tickets.pdf
readonly pages_shown=3 tokens_shown=3
readonly start_timeout_s=10 job_timeout_s=60 stop_timeout_s=20 check_timeout_s=600

ask() { # curl's own words only when something is wrong
    curl -fsS --max-time "$job_timeout_s" "$@"
}

member() { # NAME: the first string member of that name in the JSON on standard input
    grep -o "\"$1\":\"[^\"]*\"" | head -n 1 | cut -d '"' -f 4
}

rm -f "$pdf" tickets-[0-9]*.png
mkdir -p build/demo

# The system chooses a free port; "ticketpress serve" alone would take 8080.
"$program" serve --listen 127.0.0.1:0 --data "$data" 2>"$log" &
readonly service=$!
stop() {
    kill -TERM "$service" 2>/dev/null || true
    timeout "$stop_timeout_s" tail --pid="$service" -f /dev/null || kill -KILL "$service"
}
trap stop EXIT
timeout "$start_timeout_s" sh -c "until grep -q '\"event\":\"ready\"' '$log'; do sleep 0.05; done"
port=$(grep -o '"port":[0-9]*' "$log" | head -n 1 | cut -d : -f 2)
readonly url=http://127.0.0.1:$port

started=$(date +%s%N)
job=$(ask -H 'Content-Type: application/json' --data-binary "@$batch" "$url/v1/batches" | member self)
echo "POST /v1/batches: promised as $job"
while state=$(ask "$url$job?wait=10" | member state); [[ $state == queued || $state == running ]]; do
    echo "GET $job: $state"
done
ask -o "$pdf" "$url$job/document"
job_ms=$((($(date +%s%N) - started) / 1000000))
echo "GET $job: $state; its document: $(stat -c %s "$pdf") bytes, $job_ms ms after the batch was sent"

for token in $(ask "$url$job/tickets?limit=$tokens_shown" | grep -o '"token":"[^"]*"' | cut -d '"' -f 4); do
    ask -H 'Content-Type: application/json' -d "{\"token\":\"$token\"}" "$url/v1/tokens/verify"
    echo
done
trap - EXIT
stop

timeout "$check_timeout_s" tests/e2e/check_document.py "$program" "$keys" "$batch" "$pdf"
pdftoppm -q -r 150 -png -l "$pages_shown" "$pdf" tickets
echo
echo "$pdf and $(echo tickets-[0-9]*.png) are there; the service has stopped"

#!/bin/sh
# The commands around keys and tokens, on the built program: test_cli.sh PROGRAM
# Prints "ok - name" or "not ok - name"; exit 1 when one is not ok.
set -u
program=$(realpath "$1")
fixtures=$(realpath "$(dirname "$0")/../../fixtures")
root=$(dirname "$fixtures")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
umask 022
failed=0

check() { # NAME: whether the last command succeeded
    if [ $? -eq 0 ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        sed 's/^/    /' out err 2>/dev/null
        failed=1
    fi
}

run() { # EXPECTED_EXIT ARGUMENT...
    expected=$1
    shift
    "$program" "$@" >out 2>err
    code=$?
    [ $code -eq "$expected" ] || echo "exit $code instead of $expected" >>err
    [ $code -eq "$expected" ]
}

# EXPECTED_EXIT MESSAGE ARGUMENT...: what goes wrong is said on standard error, and nothing else is.
refuses() {
    expected=$1
    message=$2
    shift 2
    run "$expected" "$@" && grep -qF -- "$message" err && [ ! -s out ]
}

vector() { # the token of a good vector
    python3 - "$fixtures/token-vectors.json" "$1" <<'PYTHON'
import json
import sys
vectors = json.load(open(sys.argv[1], encoding="utf-8"))["good"]
print(next(v["token"] for v in vectors if v["name"] == sys.argv[2]))
PYTHON
}

at=2026-06-01T00:00:00Z
install -m 600 "$fixtures/keys/test-ring.json" ring.json
plain=$(vector "a plain ticket")
window=$(vector "valid from and until, one minute apart")

# ---- keys ----

run 0 keygen && python3 -c '
import base64, json
keys = json.load(open("out"))["keys"]
assert len(keys) == 1 and keys[0]["id"] == 1 and keys[0]["client"] == "*", keys
assert len(base64.urlsafe_b64decode(keys[0]["secret"] + "=")) == 32
assert keys[0]["sign_from"].endswith(":00Z") and "verify_until" not in keys[0]' 2>>err
check "keygen prints a ring of one key"

touch open.json && chmod 666 open.json && "$program" keygen >open.json && [ "$(stat -c %a open.json)" = 600 ]
check "keygen closes the file that it is redirected to"

cp open.json first.json && run 0 keygen --signing-keys first.json && cp out second.json &&
    chmod 600 second.json && python3 -c '
import json
first, second = (json.load(open(n))["keys"] for n in ("first.json", "second.json"))
assert second[0] == first[0] and second[1]["id"] == 2 and len(second) == 2
assert second[0]["secret"] != second[1]["secret"]' 2>>err
check "keygen adds a key to a ring"

run 0 keygen --client theatre && grep -q '"client": "theatre"' out
check "keygen makes a key for a client"

refuses 2 'client "*" and named clients' keygen --signing-keys first.json --client theatre
check "keygen keeps clients out of a ring for all"

"$program" keygen >/dev/full 2>err
[ $? -eq 3 ] && grep -q 'No space' err
check "keygen fails when its output is lost"

run 0 event-key --signing-keys ring.json --event evt-003 && cp out gate.json && chmod 600 gate.json &&
    python3 -c '
import json
made = json.load(open("gate.json"))
gate = json.load(open("'"$fixtures"'/token-vectors.json"))["gate"]
assert made["event_id"] == gate["event_id"]
wanted = {k["key_id"]: k["key"] for k in gate["keys"]}
assert made["keys"] and all(wanted[k["key_id"]] == k["key"] for k in made["keys"]), made' 2>>err
check "event-key prints the keys of the published gate"

refuses 2 "--event is missing" event-key --signing-keys ring.json
check "event-key needs an event"
refuses 2 "--event: not 1 to 64" event-key --signing-keys ring.json --event "a b"
check "event-key refuses what is no event id"
refuses 2 "--signing-keys is missing" event-key --event evt-003
check "event-key needs a ring"

# ---- verify ----

run 0 verify --signing-keys ring.json --at $at "$plain" &&
    [ "$(cat out)" = '{"valid":true,"event_id":"evt-003","ticket_id":"tkt-000001","issue":0,"key_id":1,"in_window":true}' ]
check "verify prints the claims"

run 0 verify --signing-keys ring.json --at $at "$window" && grep -q '"in_window":false' out &&
    run 0 verify --signing-keys=ring.json --at=2027-03-23T21:20:30Z "$(vector "another key")"
check "verify reports the window and takes =VALUE"

run 1 verify --signing-keys ring.json --at $at "$plain" "${plain%?}+" "$plain" &&
    [ "$(grep -c '"valid":true' out)" -eq 2 ] && [ "$(sed -n 2p out)" = '{"valid":false,"reason":"bad_character"}' ]
check "verify judges every token and fails when one is refused"

run 1 verify --signing-keys ring.json --at 2027-01-01T00:00:00Z "$plain" && grep -q key_retired out
check "verify refuses a key that has retired"

printf '%s\n' '{"event_id": "evt-003", "keys": [{"key_id": 1, "key": "t8GmaTwb2SLmfMTZUAuV6edLjP0moqZTb8nG5Hr0Dk4"}]}' >one.json
chmod 600 one.json
run 0 verify --event-key one.json --at $at "$plain" &&
    run 1 verify --event-key one.json --at $at "$(vector "one byte each")" && grep -q wrong_event out
check "verify judges with an event key and nothing else"

{ printf '%s\n' "$plain" && printf '%s\r\n' "$plain" && printf '\n' &&
    head -c 100000 /dev/zero | tr '\0' A && printf '\n%s' "$plain"; } >lines
run 1 verify --signing-keys ring.json --at $at - <lines && [ "$(wc -l <out)" -eq 5 ] &&
    [ "$(sed -n 1p out)" = "$(sed -n 5p out)" ] && [ "$(grep -c '"valid":true' out)" -eq 2 ] &&
    sed -n 2p out | grep -q '"valid":false' &&
    [ "$(sed -n 3p out)" = '{"valid":false,"reason":"bad_length"}' ] && [ "$(sed -n 4p out)" = "$(sed -n 3p out)" ]
check "verify reads a token a line, ended by LF alone"

refuses 2 "no token" verify --signing-keys ring.json - </dev/null
check "verify refuses to judge nothing"
refuses 2 "an argument is missing" verify --signing-keys ring.json
check "verify needs a token"
refuses 2 "--signing-keys is missing" verify "$plain"
check "verify needs keys"
refuses 2 "beside --signing-keys" verify --signing-keys ring.json --event-key gate.json "$plain"
check "verify takes one kind of keys"
refuses 2 "--at: " verify --signing-keys ring.json --at yesterday "$plain"
check "verify needs a time that it can read"
refuses 2 "none.json: No such file" verify --signing-keys none.json "$plain"
check "verify names a missing file"
chmod 644 ring.json
refuses 2 "0644" verify --signing-keys ring.json "$plain"
check "verify refuses keys that everyone can read"
chmod 600 ring.json

run 0 verify --signing-keys ring.json --at $at --client anybody -- "$plain"
check "verify lets every client use a ring for all"

sed 's/"\*"/"a"/' ring.json >clients.json && chmod 600 clients.json
run 0 verify --signing-keys clients.json --at $at --client a "$plain" &&
    run 1 verify --signing-keys clients.json --at $at --client b "$plain" && grep -q unknown_key out
check "verify answers for the keys of the client only"

# ---- usage and settings ----

"$program" >out 2>err
[ $? -eq 2 ] && grep -q '^usage:' err
check "without a command the usage is shown"
run 0 --help && grep -q '^usage:' out && run 0 help && run 0 render --help && grep -q -- '--workers' out
check "help is shown on request"
run 0 version && grep -qx 'ticketpress [0-9.]*' out && grep -qx 'fonts [0-9a-f]\{64\}' out &&
    [ "$(wc -l <out)" -eq 2 ] && cp out before && run 0 --version && cmp -s out before
check "version is a line of its own and one for the fonts"
face=/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf
run 0 version --fonts $face && ! cmp -s out before && cp out before && run 0 version --fonts $face &&
    cmp -s out before && cp $face copy.ttf && run 0 version --fonts copy.ttf && cmp -s out before
check "the hash of the fonts tells which they are, wherever they lie"
run 2 version --fonts /nowhere/font.ttf && grep -q 'font /nowhere/font.ttf: No such file' err &&
    grep -qx 'ticketpress [0-9.]*' out
check "version names a font that is missing"
refuses 2 'there is no command "fly"' fly
check "an unknown command is named"
refuses 2 "there is no option --wings" verify --wings=2 "$plain"
check "an unknown option is named"
refuses 2 "there is no option --workers" verify --workers 2 "$plain"
check "an option of another command is unknown"
refuses 2 "there is no option -x" keygen -x
check "an unknown letter is named"
refuses 2 "its value is missing" verify --signing-keys
check "a missing value is named"
refuses 2 "given twice" verify --at $at --at $at "$plain"
check "an option given twice is refused"
refuses 2 "one argument too many: b" render a b -o c
check "an argument too many is named"
refuses 2 "--output is missing" render batch.json
check "render needs to know where to"
refuses 2 '--workers: "0" is not a number from 1 to 256' render --workers 0 batch.json -o out.pdf
check "a setting out of its range is refused"
TICKETPRESS_WORKERZ=1 refuses 2 "TICKETPRESS_WORKERZ" keygen
check "an unknown variable is named"
echo '{"workerz": 1}' >config.json
refuses 2 "config.json: /workerz: there is no such setting" keygen --config config.json
check "an unknown member of the configuration is named"
echo '{"signing-keys": "ring.json"}' >config.json
run 0 verify --config config.json --at $at "$plain" &&
    TICKETPRESS_CONFIG=config.json run 0 verify --at $at "$plain" &&
    TICKETPRESS_SIGNING_KEYS=ring.json run 0 verify --at $at "$plain"
check "the ring may be named by the configuration or a variable"

run 0 settings --markdown && sed -n '/<!-- settings -->/,/<!-- \/settings -->/p' "$root/README.md" |
    sed '1d;$d' >table && cmp out table >>err
check "the README lists the settings as they are"

python3 "$fixtures/make_token_vectors.py" --check >out 2>err
check "the published vectors are those of their script"

exit $failed

#!/bin/bash
# The release has no gates, hung tasks or other things for tests, and links no test library.
#
# usage: tests/e2e/test_release_symbols.sh PROGRAM
set -euo pipefail

readonly program=$1
# A ticket has a gate and a line may wrap: those names alone are no sign of a test.
readonly pattern='(^|_)(tests?|hangs?|hung|criterion)(_|$)|gates?_(open|close|wait|hold|pass)|^__wrap_'
failed=0

expect_none() { # WHAT FOUND
    if [[ -z $2 ]]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        sed 's/^/    /' <<<"$2"
        failed=1
    fi
}

# Names that our own functions and data have, local ones included.
names_of() {
    nm --defined-only "$1" | awk '$2 ~ /[TtDdBbRr]/ { print $3 }'
}

names=$(names_of "$program")
expect_none 'the release has no symbol for tests' "$(grep -E "$pattern" <<<"$names" || true)"
expect_none 'its symbols can be read' "$(grep -qx main <<<"$names" || echo 'no main')"

sample=$'pool_gate_open\ntest_hang\ncriterion_run\n__wrap_malloc\npool_test_hook'
expect_none 'such names would be found' "$(grep -vE "$pattern" <<<"$sample" || true)"

needed=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
expect_none 'it links no test library' "$(grep -E 'criterion|asan|tsan|ubsan' <<<"$needed" || true)"

hardening=$(readelf -W -h -l -d "$program")
expect_none 'it is position independent' "$(grep -q 'Type: *DYN' <<<"$hardening" || echo missing)"
expect_none 'it binds at start' "$(grep -q 'BIND_NOW\|FLAGS.*NOW' <<<"$hardening" || echo missing)"
expect_none 'its relocations are read-only' "$(grep -q GNU_RELRO <<<"$hardening" || echo missing)"
expect_none 'its stack is not executable' \
    "$(grep 'GNU_STACK' <<<"$hardening" | grep -qv 'E ' || echo missing)"
exit "$failed"

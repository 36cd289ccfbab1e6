#!/bin/bash
# What the Makefile promises: a second run calls neither compiler nor package manager, missing
# packages alone are installed, and a bare machine can ask for help.
#
# usage: tests/e2e/test_make.sh PROGRAM    (the release build, up to date)
set -euo pipefail
cd "$(dirname "$0")/../.."
unset MAKEFLAGS MAKELEVEL MFLAGS

readonly make_timeout_s=60
failed=0

# A check is one command or a chain of them: `set -e` sleeps inside a condition.
check() { # WHAT COMMAND...
    local what=$1 output
    shift
    if output=$("$@" 2>&1); then
        echo "ok - $what"
    else
        echo "not ok - $what"
        tail -n 20 <<<"$output" | sed 's/^/    /'
        failed=1
    fi
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Stand-ins that write down how they were called; their exit status is the first argument.
stand_in() { # STATUS NAME...
    local status=$1 name
    shift
    mkdir -p "$folder/bin"
    for name in "$@"; do
        printf '#!/bin/sh\necho "%s $*" >>"%s/calls"\nexit %s\n' "$name" "$folder" "$status" \
            >"$folder/bin/$name"
        chmod +x "$folder/bin/$name"
    done
}

make_with_stand_ins() {
    PATH=$folder/bin:$PATH timeout "$make_timeout_s" make --no-print-directory "$@"
}

second_run_is_quiet() {
    make_with_stand_ins deps program && [[ ! -e $folder/calls ]] || { cat "$folder/calls"; false; }
}

# A program of one source file, to see when it is built anew.
small_tree() {
    mkdir -p "$folder/small/service" "$folder/small/domain" &&
        cp Makefile "$folder/small/" && : >"$folder/small/domain/a.h" &&
        printf '#include "domain/a.h"\nint main(void)\n{\n    return 0;\n}\n' \
            >"$folder/small/service/main.c" &&
        timeout "$make_timeout_s" make -C "$folder/small"
}

is_built_anew() {
    rm -f "$folder/calls"
    ! make_with_stand_ins -C "$folder/small" "$@" && grep -q "^gcc .*-c -o" "$folder/calls"
}

header_counts() {
    make_with_stand_ins -C "$folder/small" && touch -d '1 hour' "$folder/small/domain/a.h" &&
        is_built_anew
}

missing_alone_is_installed() {
    mkdir -p "$folder/deploy" && cp deploy/install-packages.sh "$folder/deploy/" &&
        printf '[build]\nmake\nticketpress-no-such-a\n[run]\n# none\n\n[test]\nticketpress-no-such-b\n' \
            >"$folder/deploy/debian-packages.txt" &&
        rm -f "$folder/calls" &&
        PATH=$folder/bin:$PATH timeout "$make_timeout_s" "$folder/deploy/install-packages.sh" \
            build run &&
        diff - <(sed 's/^sudo .*env DEBIAN_FRONTEND=noninteractive //' "$folder/calls") <<'CALLS'
apt-get update -q
apt-get install -q -y --no-install-recommends ticketpress-no-such-a
CALLS
}

unknown_section_is_refused() {
    ! "$folder/deploy/install-packages.sh" no-such-section && ! "$folder/deploy/install-packages.sh"
}

help_needs_no_package() {
    local list
    list=$(make_with_stand_ins help) && grep -q '^  check  *every test' <<<"$list"
}

each_target_is_listed() {
    local target list
    list=$(timeout "$make_timeout_s" make help)
    for target in all help deps demo check check-long test asan tsan race e2e lint format bench \
        install clean; do
        grep -q "^  $target " <<<"$list" || { echo "$target"; return 1; }
    done
}

callers_flags_come_last() {
    timeout "$make_timeout_s" make -n -B CC=callers-cc CFLAGS=-O0 LDFLAGS=-Wl,-last LDLIBS=-llast \
        BUILD="$folder/build" program >"$folder/plan" &&
        grep -q '^callers-cc .* -O2 .* -O0 -c -o' "$folder/plan" &&
        grep -q '^callers-cc .* -O0 -Wl,-last -o .* -llast$' "$folder/plan"
}

stand_in 1 gcc clang cc ld ar apt-get apt sudo
check 'a second run calls neither compiler nor package manager' second_run_is_quiet
rm "$folder/bin"/*
check 'a program of one file builds' small_tree
stand_in 1 gcc clang cc ld ar
check 'a header that changed builds it anew' header_counts
check 'other flags build it anew' is_built_anew CFLAGS=-DOTHER
stand_in 0 apt-get sudo
check 'missing packages alone are installed' missing_alone_is_installed
check 'a section that the list does not have is refused' unknown_section_is_refused
stand_in 1 pkg-config
check 'help needs no package' help_needs_no_package
rm -r "$folder/bin"
check 'help lists every target' each_target_is_listed
check "the caller's flags come last" callers_flags_come_last
exit "$failed"

#!/bin/bash
# The Dockerfile without a Docker: its packages are the one list's, what it copies exists and is
# enough, and its build steps, run here on exactly the files that it copies, install a program that
# starts as nobody's user, finds its data, and needs no library beyond the "run" section.
#
# usage: tests/e2e/test_dockerfile.sh PROGRAM
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly list=deploy/debian-packages.txt
readonly build_timeout_s=500
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

stage() { # NUMBER: its lines, continued ones joined, comments left out
    sed -e '/^#/d' -e ':join' -e '/\\$/{N;s/\\\n */ /;b join' -e '}' Dockerfile |
        awk -v wanted="$1" '/^FROM /{ stage++ } stage == wanted'
}

sections_of() {
    stage "$1" | sed -n 's/^RUN .*install-packages\.sh \([^&]*[^& ]\).*/\1/p'
}

installs_sections() {
    [[ $(sections_of 1) == build && $(sections_of 2) == run ]] &&
        ! grep -E '^[^#]*(apt-get|apt|dpkg) ' Dockerfile
}

runs_as_nobody() {
    [[ $(stage 2 | sed -n 's/^USER //p') == 10001:10001 ]] &&
        [[ $(stage 2 | sed -n 's/^ENTRYPOINT //p') == '["/usr/local/bin/ticketpress"]' ]]
}

# Copy as the first stage does; "COPY a b/ c/" puts a and what is in b into c.
copy_context() {
    local words sources target source
    while read -r -a words; do
        sources=("${words[@]:1:${#words[@]}-2}")
        target=$folder/src/${words[-1]}
        mkdir -p "$target"
        for source in "${sources[@]}"; do
            is_in_context "$source" || { echo ".dockerignore keeps $source out"; return 1; }
            if [[ -d $source ]]; then source+=/.; fi
            cp -R "$source" "$target" || return 1
        done
    done < <(stage 1 | grep '^COPY ')
}

is_in_context() {
    grep -qxF "!$1" .dockerignore
}

# The lines of the first stage after the packages, as they stand, with the staging folder moved.
build_as_written() {
    local steps
    steps=$(stage 1 | sed -n 's/^RUN //p' | grep -v install-packages.sh)
    [[ $steps == *"make install"* ]] || return 1
    (cd "$folder/src" && env -u MAKEFLAGS -u MAKELEVEL timeout "$build_timeout_s" \
        bash -ec "${steps//\/staged/$folder/staged}")
}

starts_as_nobody() {
    local installed=$folder/staged/usr/local
    chmod -R a+rX "$folder" && chmod -R a-w "$installed" &&
        (cd / && as_nobody "$installed/bin/ticketpress" version)
}

as_nobody() {
    if [[ $(id -u) == 0 ]]; then
        timeout 30 setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
    else
        timeout 30 "$@"
    fi
}

data_is_installed() {
    diff -r service/data "$folder/staged/usr/local/share/ticketpress" |
        grep -vx "Only in $folder/staged/usr/local/share/ticketpress: LICENSE" && return 1
    [[ -s $folder/staged/usr/local/share/ticketpress/LICENSE ]]
}

# Every library that the program names itself belongs to a package of the "run" section or to libc.
libraries_are_listed() {
    local program=$folder/staged/usr/local/bin/ticketpress name path package needed result=0
    needed=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    [[ -n $needed ]] || return 1
    while read -r name; do
        path=$(ldconfig -p | awk -v name="$name" '$1 == name { print $NF; exit }')
        package=$({ dpkg -S "$path" || dpkg -S "$(basename "$path")"; } 2>/dev/null |
            head -n 1 | cut -d: -f1)
        [[ $package =~ ^(libc6|libgcc-s1|libstdc\+\+6)$ ]] && continue
        awk '/^\[/{ in_run = $1 == "[run]" } in_run' "$list" | grep -qxF "$package" ||
            { echo "$name: package '$package' is not in section [run]"; result=1; }
    done <<<"$needed"
    return "$result"
}

check 'each stage installs its section of the one list' installs_sections
check 'the last stage runs the program as a user of its own' runs_as_nobody
check 'what the first stage copies is in its context' copy_context
check 'its build steps work on exactly those files' build_as_written
check 'the installed program starts as nobody' starts_as_nobody
check 'its data is installed beside it' data_is_installed
check 'its libraries are packages of the run section' libraries_are_listed
exit "$failed"

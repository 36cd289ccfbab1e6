#!/bin/bash
# Install what is missing of the named sections of deploy/debian-packages.txt.
#
# usage: deploy/install-packages.sh SECTION...
#
# With everything there it asks dpkg once and calls no package manager.
set -euo pipefail
export LC_ALL=C

readonly list="$(dirname "$0")/debian-packages.txt"
readonly apt_timeout_s=900

packages_of() {
    awk -v wanted="[$1]" '
        /^[ \t]*(#|$)/ { next }
        /^\[/ { is_wanted = ($1 == wanted); is_found = is_found || is_wanted; next }
        is_wanted { print $1 }
        END { exit !is_found }
    ' "$list" || { echo "$list: no section [$1]" >&2; return 1; }
}

# dpkg-query fails where it has never heard of a package: that one is missing, which is no failure.
installed_of() {
    { dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true; } |
        sed -n 's/^installed //p' | sort -u
}

# No daemon that a package brings is started: RUNLEVEL says that the machine is being set up.
as_root() {
    if [[ $(id -u) == 0 ]]; then
        timeout "$apt_timeout_s" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 "$@"
    elif command -v sudo >/dev/null; then
        sudo timeout "$apt_timeout_s" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 "$@"
    else
        echo "to install packages, run as root: $*" >&2
        return 1
    fi
}

[[ $# -gt 0 ]] || { echo "usage: $0 SECTION..." >&2; exit 2; }
wanted=()
for section in "$@"; do
    packages=$(packages_of "$section")
    read -r -d '' -a wanted <<<"${wanted[*]:-} $packages" || true
done
missing=$(printf '%s\n' "${wanted[@]}" | sort -u |
    grep -vxF -e "$(installed_of "${wanted[@]}")") || true # grep fails when nothing is missing
[[ -n $missing ]] || exit 0

read -r -d '' -a packages <<<"$missing" || true
echo "installing: ${packages[*]}"
as_root apt-get update -q
as_root apt-get install -q -y --no-install-recommends "${packages[@]}"

# shellcheck shell=bash
# What scripts/build, scripts/test and scripts/demo share: sourced, never run.
#
#   collx_options "$@"   understands --help and -y; the rest is left in collx_rest
#   collx_preloads       for what sets LD_PRELOAD: the checkout has to be where that works
#   collx_setup          installs what is missing of scripts/packages
#   collx_configure DIR [OPTION...]   sets up the build folder DIR if need be
#   collx_build DIR [OPTION...]   does so, and builds

unset CDPATH # cd would say where it went
collx_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
collx_yes=${CI:-}
# Numbers have decimal points, whatever the user's locale.
export LC_ALL=C.UTF-8
collx_rest=()

collx_die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

collx_say() {
    printf '== %s\n' "$*"
}

# The comment at the top of the script, after its first line, is its help.
collx_help() {
    sed -n '2,/^[^#]/{s/^# \{0,1\}//p;}' "$0"
}

collx_options() {
    while (($#)); do
        case $1 in
        -h | --help)
            collx_help
            exit 0
            ;;
        -y | --yes) collx_yes=1 ;;
        *) collx_rest+=("$1") ;;
        esac
        shift
    done
}

# For scripts that take nothing else.
collx_no_rest() {
    ((${#collx_rest[@]} == 0)) || collx_die "do not know '${collx_rest[0]}'; try --help"
}

# The loader ignores what it cannot load: programs would run without collx, and be measured.
collx_preloads() {
    [[ $collx_root != *[[:space:]:]* ]] ||
        collx_die "LD_PRELOAD cannot name a path with blanks or colons: move the checkout from '$collx_root'"
}

# The packages of the list that are not installed, one a line.
collx_missing() {
    local package
    while read -r package; do
        # dpkg-query fails for a package that was never heard of, which is one that is missing.
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true) == installed ]] ||
            printf '%s\n' "$package"
    done < <(sed 's/#.*//; s/[[:space:]]*$//; /^$/d' "$collx_root/scripts/packages")
}

# Those of the names given that apt knows no package for, one a line.
collx_apt_unknown() {
    local package
    for package in "$@"; do
        apt-cache show --no-all-versions "$package" >/dev/null 2>&1 || printf '%s\n' "$package"
    done
}

collx_setup() {
    local missing unknown as_root=() answer
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        printf '%s: not a Debian system: nothing is installed; scripts/packages lists what is needed\n' \
            "${0##*/}" >&2
        return
    fi
    mapfile -t missing < <(collx_missing)
    ((${#missing[@]})) || return 0

    collx_say "Debian packages that are missing:"
    printf '   %s\n' "${missing[@]}"
    if ((EUID != 0)); then
        command -v sudo >/dev/null ||
            collx_die "cannot install them: neither root nor sudo. As root:
  apt-get install --no-install-recommends ${missing[*]}"
        as_root=(sudo)
    fi
    if [[ -z $collx_yes && -t 0 ]]; then
        read -r -p "Install them with ${as_root[*]}${as_root:+ }apt-get? [Y/n] " answer
        [[ -z $answer || $answer == [Yy]* ]] || collx_die "nothing was installed"
    fi
    mapfile -t unknown < <(collx_apt_unknown "${missing[@]}")
    if ((${#unknown[@]})); then
        "${as_root[@]}" apt-get update || collx_die "apt-get update failed: see above"
        # Releases of Debian differ in what they have, and most of the list is for tests and the demo.
        mapfile -t unknown < <(collx_apt_unknown "${missing[@]}")
        if ((${#unknown[@]})); then
            collx_say "this release of Debian has no ${unknown[*]}: what needs that is left out"
            mapfile -t missing < <(printf '%s\n' "${missing[@]}" |
                grep -vxF -f <(printf '%s\n' "${unknown[@]}"))
            ((${#missing[@]})) || return 0
        fi
    fi
    # Through env, because sudo does not hand the environment on.
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "${missing[@]}" </dev/null ||
        {
            # A list of packages that is too old names versions that are no longer there.
            "${as_root[@]}" apt-get update &&
                "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
                    apt-get install -y --no-install-recommends "${missing[@]}" </dev/null
        } || collx_die "apt-get could not install them: see above"
}

collx_configure() {
    local folder=$collx_root/$1
    shift
    if [[ ! -f $folder/build.ninja ]]; then
        meson setup "$folder" "$collx_root" "$@"
    fi
}

collx_build() {
    collx_configure "$@"
    ninja -C "$collx_root/$1"
}

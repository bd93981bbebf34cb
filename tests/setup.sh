# SPDX-License-Identifier: Apache-2.0
# What samples/run and tests/run share: the packages they need and the release build in build/.
# Sourced by sh with the top directory as working directory. MESON_OPTIONS is handed to meson.

# What the program needs, and what its tests need besides. tests/README.md tells what for.
DEBIAN_BUILD="gcc libc6-dev meson ninja-build pkg-config python3 libpcap-dev libndpi-dev
    libsqlite3-dev libxxhash-dev libjansson-dev libssl-dev libmaxminddb-dev
    libarchive-dev zlib1g-dev liblzma-dev libseccomp-dev libcurl4-openssl-dev"
DEBIAN_TEST="libcriterion-dev"
DEBIAN_FUZZ="clang libclang-rt-dev"
FEDORA_BUILD="gcc meson ninja-build pkgconf-pkg-config python3 libpcap-devel ndpi-devel
    sqlite-devel xxhash-devel jansson-devel openssl-devel libmaxminddb-devel
    libarchive-devel zlib-devel xz-devel libseccomp-devel libcurl-devel"
FEDORA_TEST="criterion-devel"
FEDORA_FUZZ="clang compiler-rt"

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# Each prints those of the named packages that are not installed.
missing_debian() {
    for package; do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=
        [ "$state" = installed ] || printf ' %s' "$package"
    done
}

missing_fedora() {
    for package; do
        rpm -q --whatprovides "$package" >/dev/null 2>&1 || printf ' %s' "$package"
    done
}

# Installs what is missing, after saying so. usage: install_packages [test|fuzz]
install_packages() {
    if command -v apt-get >/dev/null; then
        wanted=$DEBIAN_BUILD
        [ "${1-}" != test ] || wanted="$wanted $DEBIAN_TEST"
        [ "${1-}" != fuzz ] || wanted=$DEBIAN_FUZZ
        # shellcheck disable=SC2086 # a list of words
        missing=$(missing_debian $wanted)
        [ -n "$missing" ] || return 0
        echo "Installing with apt-get:$missing" >&2
        # shellcheck disable=SC2086
        as_root apt-get -qq update && as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get -qq -y install --no-install-recommends $missing >/dev/null
    elif command -v dnf >/dev/null; then
        wanted=$FEDORA_BUILD
        [ "${1-}" != test ] || wanted="$wanted $FEDORA_TEST"
        [ "${1-}" != fuzz ] || wanted=$FEDORA_FUZZ
        # shellcheck disable=SC2086
        missing=$(missing_fedora $wanted)
        [ -n "$missing" ] || return 0
        echo "Installing with dnf:$missing" >&2
        # shellcheck disable=SC2086
        as_root dnf -q -y install $missing >/dev/null
    else
        echo "No apt-get and no dnf here: the libraries of README.md must be there already." >&2
    fi
}

# Configures build/ when that is new or the options are others.
# usage: configure_release [OPTION OF MESON]...
configure_release() {
    options="${MESON_OPTIONS-} $*"
    # shellcheck disable=SC2086 # options are words
    if [ ! -f build/build.ninja ]; then
        quietly meson setup build $options
        echo "$options" >build/options.txt
    elif [ $# -gt 0 ] && [ "$options" != "$(cat build/options.txt 2>/dev/null)" ]; then
        quietly meson configure build $options
        echo "$options" >build/options.txt
    fi
}

# Runs a command; its output is shown only if it fails.
quietly() {
    output=$("$@" 2>&1) || { printf '%s\n' "$output" >&2; return 1; }
}

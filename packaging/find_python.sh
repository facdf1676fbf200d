#!/bin/sh
# Print the Python that Inglenook is built with, or say in one sentence how to get one.
# A name or path given as the first argument is the only one tried.
set -u

usable() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
has_venv() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

how_to_install() {
    if [ "$(uname -s)" = Darwin ]; then
        echo "brew install python@3.13"
    elif command -v apt-get >/dev/null 2>&1; then
        echo "sudo apt-get install python3 python3-venv"
    elif command -v dnf >/dev/null 2>&1; then
        echo "sudo dnf install python3.13"
    else
        echo "your system's package manager"
    fi
}

if [ -n "${1:-}" ]; then
    usable "$1" || { echo "'$1' is no Python 3.11 or newer: name another one with PYTHON=." >&2; exit 1; }
    has_venv "$1" || { echo "'$1' has no venv module: install it (on Debian: sudo apt-get install python3-venv) or name another one with PYTHON=." >&2; exit 1; }
    echo "$1"
    exit 0
fi

without_venv=
# Every dependency has wheels for 3.11 to 3.13, so these go before whatever `python3` is.
for python in python3.13 python3.12 python3.11 python3 python \
    "${HOME:-/nonexistent}"/.pyenv/versions/3.1[1-9]*/bin/python; do
    usable "$python" || continue
    if has_venv "$python"; then
        echo "$python"
        exit 0
    fi
    without_venv=${without_venv:-$python}
done

if [ -n "$without_venv" ]; then
    version=$("$without_venv" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if command -v apt-get >/dev/null 2>&1; then
        remedy="sudo apt-get install python$version-venv"
    else
        remedy=$(how_to_install)
    fi
    echo "Python $version is here, but without its venv module: install it with '$remedy', then run make again." >&2
else
    echo "Inglenook needs Python 3.11 or newer and found none: install it with '$(how_to_install)', or name one with PYTHON=/path/to/python." >&2
fi
exit 1

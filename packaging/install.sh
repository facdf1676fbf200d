#!/bin/sh
# install.sh [PYTHON] [--test]: find a Python and let install.py do the rest.
# A .venv that works keeps its Python, and answers at once when there is nothing to do.
set -eu
cd "$(dirname "$0")/.."
python=${1:-}
[ $# -eq 0 ] || shift
if [ -z "$python" ] && .venv/bin/python -c '' 2>/dev/null; then
    python=.venv/bin/python
else
    python=$(sh packaging/find_python.sh "$python")
fi
exec "$python" packaging/install.py "$@"

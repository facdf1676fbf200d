#!/bin/sh
# Remove what install.sh installed. Conversations, models and settings stay, unless told otherwise:
#   ./uninstall.sh [--with-conversations]
set -eu
program=$(cd "$(dirname "$0")" && pwd)
prefix=${program%/opt/inglenook}

fail() {
    echo "$1" >&2
    exit 1
}

with_conversations=
case ${1:-} in
    '') ;;
    --with-conversations) with_conversations=yes ;;
    *) fail "Only --with-conversations is understood, and not '$1'." ;;
esac
if [ "$prefix" = "$program" ] || [ ! -x "$program/inglenook" ]; then
    fail "There is no Inglenook installed in $program, so nothing was removed."
fi
for process in /proc/[0-9]*; do
    if [ "$(readlink "$process/exe" 2>/dev/null)" = "$program/inglenook" ]; then
        fail "Inglenook is running: quit it, then remove it."
    fi
done

share=$prefix/share
if [ "$prefix" = "${HOME:-}/.local" ]; then
    share=${XDG_DATA_HOME:-$share}
fi
rm -f "$share/applications/inglenook.desktop" "$share/icons/hicolor/scalable/apps/inglenook.svg"
if [ "$(readlink "$prefix/bin/inglenook" 2>/dev/null)" = "$program/inglenook" ]; then
    rm -f "$prefix/bin/inglenook"
fi

data=${XDG_DATA_HOME:-${HOME:-}/.local/share}/inglenook
cache=${XDG_CACHE_HOME:-${HOME:-}/.cache}/inglenook
state=${XDG_STATE_HOME:-${HOME:-}/.local/state}/inglenook
if [ -n "${INGLENOOK_HOME:-}" ]; then
    data=$INGLENOOK_HOME/data cache=$INGLENOOK_HOME/cache state=$INGLENOOK_HOME/logs
fi
if [ -n "$with_conversations" ]; then
    rm -rf "$data" "$cache" "$state"
    echo "Inglenook and all its conversations are removed."
elif [ -e "$data" ]; then
    echo "Inglenook is removed. Conversations, models and settings stay in $data."
else
    echo "Inglenook is removed."
fi
rm -rf "$program"

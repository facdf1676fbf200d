#!/bin/sh
# Install Inglenook for this user, without a password: program, menu entry, icon and command.
#   ./install.sh [--prefix FOLDER]     FOLDER: instead of ~/.local
# A second time it replaces the program; conversations, models and settings stay.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

fail() {
    echo "$1" >&2
    exit 1
}

prefix=${HOME:+$HOME/.local}
share=${XDG_DATA_HOME:-${prefix:+$prefix/share}}
if [ "${1:-}" = --prefix ] && [ -n "${2:-}" ]; then
    prefix=$2
    share=$2/share
elif [ $# -gt 0 ]; then
    fail "Only --prefix FOLDER is understood, and not '$1'."
fi
[ -n "$prefix" ] || fail "There is no HOME to install to: name a folder with --prefix FOLDER."
case $prefix in
    /*) ;;
    *) fail "The folder after --prefix has to begin with /, and '$prefix' does not." ;;
esac

[ "$(uname -s) $(uname -m)" = "Linux x86_64" ] ||
    fail "This package is for Linux on x86_64, and this is $(uname -s) on $(uname -m)."
libc=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2)
oldest=$(printf '%s\n%s\n' "${libc:-0}" "@GLIBC@" | sort -V | head -n 1)
[ "$oldest" = "@GLIBC@" ] ||
    fail "Inglenook needs glibc @GLIBC@ or newer (Debian 12, Ubuntu 23.04, Fedora 37), and this system has ${libc:-another C library}."

program=$prefix/opt/inglenook
bin=$prefix/bin
# A program that runs reads files of its folder as it needs them.
for process in /proc/[0-9]*; do
    if [ "$(readlink "$process/exe" 2>/dev/null)" = "$program/inglenook" ]; then
        fail "Inglenook is running from $program: quit it, then install again."
    fi
done

# Copied beside its place and then renamed: an interrupted copy is never taken for a program.
mkdir -p "$prefix/opt" "$bin" "$share/applications" "$share/icons/hicolor/scalable/apps"
rm -rf "$program.new" "$program.old"
cp -R "$here/inglenook" "$program.new" || {
    rm -rf "$program.new"
    fail "The program could not be copied to $prefix/opt: it needs @MEGABYTES@ MB there."
}
cp "$here/uninstall.sh" "$program.new/uninstall.sh"
[ ! -e "$program" ] || mv "$program" "$program.old"
mv "$program.new" "$program"
rm -rf "$program.old"

# A desktop entry quotes twice: the command's own marks, then every backslash of the string.
quoted=$(printf '%s' "$program/inglenook" | sed -e 's/[\\"`$]/\\&/g' -e 's/\\/\\\\/g' -e 's/%/%%/g')
entry=$share/applications/inglenook.desktop
while IFS= read -r line; do
    case $line in
        Exec=*) printf 'Exec="%s"\n' "$quoted" ;;
        *) printf '%s\n' "$line" ;;
    esac
done <"$here/inglenook.desktop" >"$entry.new"
mv "$entry.new" "$entry"
cp "$here/inglenook.svg" "$share/icons/hicolor/scalable/apps/inglenook.svg"
ln -sf "$program/inglenook" "$bin/inglenook"

echo "Inglenook is installed: look for it in the menu, or run $bin/inglenook."
echo "To remove it: $program/uninstall.sh"

# For scripts/package-test and scripts/fresh: new systems of Debian in folders. Sourced with `roots`, where they are made and
# kept packed for the next time, and `log` set. Needs root, debootstrap, the archive.

mirror=${DEEPC_MIRROR:-http://deb.debian.org/debian}
passed=0 failed=0 out='' status=0
system=/nowhere
mkdir -p "$roots" "${log%/*}"

leave() {
    for at in sys dev proc; do
        ! mountpoint -q "$system/$at" || umount -l "$system/$at"
    done
}
trap leave EXIT

# new_system SUITE: a minbase, from what was packed before or from the archive
new_system() {
    packed=$roots/$1.tar
    leave
    system=$roots/$1.${0##*/}
    leave # what an earlier run may have left
    rm -rf --one-file-system "$system"
    if [ ! -e "$packed" ]; then
        debootstrap --variant=minbase "$1" "$system" "$mirror" >>"$log" 2>&1 || return 1
        [ "$1" != trixie ] || echo "deb $mirror trixie-backports main" >"$system/etc/apt/sources.list.d/backports.list"
        tar -C "$system" -cf "$packed.new" . && mv "$packed.new" "$packed"
    else
        mkdir -p "$system" && tar -C "$system" -xf "$packed" || return 1
    fi
    cp /etc/resolv.conf "$system/etc/"
    for conf in /etc/apt/apt.conf.d/*proxy*; do
        [ ! -e "$conf" ] || cp "$conf" "$system/etc/apt/apt.conf.d/"
    done
    mount -t proc proc "$system/proc" && mount --rbind /dev "$system/dev" && mount --make-rslave "$system/dev" &&
        mount -t sysfs -o ro sysfs "$system/sys"
}

enter() { # enter COMMAND...: in the system
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive chroot "$system" "$@" </dev/null
}

inside() { # inside COMMAND...: the same; output in $out
    out=$(enter "$@" 2>&1)
    status=$?
    printf '+ %s\n%s\n' "$*" "$out" >>"$log"
    return $status
}

check() { # check SENTENCE COMMAND...
    sentence=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "not so, $suite: $sentence"
        printf '%s\n' "$out" | tail -n 15 | sed 's/^/    /'
    fi
}

says() {
    case $out in *"$1"*) return 0 ;; esac
    return 1
}

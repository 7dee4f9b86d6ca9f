#!/usr/bin/env bash
# Builds the image of packaging/Dockerfile with buildah, without a daemon and without a registry, and starts what is in it: as the
# user of the image, on a root file system that nobody can write, with a folder for /data.
#
#   bash packaging/try-container.sh target/release/statehouse
#
# The base image is a Debian made by debootstrap under the name that the Dockerfile asks for. It needs root, buildah, debootstrap and
# a mirror of Debian. Prints lines like those of try-deb.sh; exits with 1 if one is short.
set -euo pipefail

program="$(realpath "$1")"
here="$(dirname "$(realpath "${BASH_SOURCE[0]}")")"
mirror="${MIRROR:-http://deb.debian.org/debian}"
port=17422
url="http://127.0.0.1:$port"
short=0

scratch="$(mktemp -d)"
chmod 711 "$scratch"
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
buildah() { command buildah --root "$scratch/storage" --runroot "$scratch/run" "$@"; }
server=
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    buildah umount -a >/dev/null 2>&1 || true
    rm -rf "$scratch"
}
trap cleanup EXIT

figure() { # what found goal holds
    local verdict=ok
    if [ "$4" != yes ]; then verdict=SHORT short=1; fi
    printf 'container %-12s %s; goal %s  %s\n' "$1" "$2" "$3" "$verdict"
}
holds() { if "$@"; then echo yes; else echo no; fi; }

debootstrap --variant=minbase bookworm "$scratch/slim" "$mirror" >"$scratch/debootstrap.log" 2>&1 ||
    { tail "$scratch/debootstrap.log"; exit 2; }
base=$(buildah from scratch)
buildah add "$base" "$scratch/slim" / >/dev/null
buildah commit --rm "$base" docker.io/library/debian:bookworm-slim >/dev/null 2>&1
rm -rf "$scratch/slim"

# Only what the Dockerfile copies.
mkdir -p "$scratch/context/target/release" "$scratch/context/packaging"
cp "$program" "$scratch/context/target/release/statehouse"
cp "$here/container.toml" "$scratch/context/packaging/"
buildah bud --pull-never --format docker -f "$here/Dockerfile" -t statehouse "$scratch/context" >"$scratch/build.log" 2>&1 ||
    { tail "$scratch/build.log"; exit 2; }
said=$(buildah inspect --type image statehouse | tr -d ' \n')
user=$(sed -n 's/.*"User":"\([^"]*\)".*/\1/p' <<<"$said")
figure user "$user" "65532:65532" "$(holds test "$user" = 65532:65532)"
figure healthcheck "$(grep -c '"check","health"' <<<"$said")" "1: the image knows how to ask" "$(holds grep -q '"check","health"' <<<"$said")"

container=$(buildah from --pull-never statehouse)
root=$(buildah mount "$container")
install -d -m 0700 -o 65532 -g 65532 "$scratch/data"
# As an engine does with `read_only`, `cap_drop` and a volume: a mount namespace of its own. Takes the place of the shell that calls it.
inside() {
    exec unshare --mount bash -c '
        set -e
        root=$1 data=$2; shift 2
        mount --bind "$root" "$root"
        mount --bind "$data" "$root/data"
        mount -t proc proc "$root/proc"
        mount -o remount,ro,bind "$root"
        cd "$root"
        exec chroot "$root" setpriv --reuid=65532 --regid=65532 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs \
            /usr/bin/env -i PATH=/usr/bin:/bin STATEHOUSE_TOKEN_FILE=/data/root.token \
            STATEHOUSE_SERVER__LISTEN="127.0.0.1:'"$port"'" "$@"' bash "$root" "$scratch/data" "$@"
}
inside /usr/bin/statehouse serve --config /etc/statehouse/statehouse.toml >"$scratch/server.out" 2>"$scratch/server.log" &
server=$!
for _ in $(seq 300); do
    [ "$(curl -s -o /dev/null -w '%{http_code}' "$url/readyz")" != 200 ] || break
    kill -0 $server 2>/dev/null || { cat "$scratch/server.log"; exit 2; }
    sleep 0.1
done
written=$(curl -s -o /dev/null -w '%{http_code}' -X PUT "$url/v1/cells/greeting" -d '"hello"' -H "Authorization: Bearer $(cat "$scratch/data/root.token")")
figure first-write "$written" 201 "$(holds test "$written" = 201)"
rights=$(awk '/^(Uid|CapEff):/ { printf "%s %s ", $1, $2 }' "/proc/$server/status")
figure rights "$rights" "of the user, without a capability" "$(holds test "$rights" = "Uid: 65532 CapEff: 0000000000000000 ")"
refused=$(inside /bin/sh -c 'for to in / /etc /tmp /var/lib; do touch "$to/x" 2>/dev/null && echo "$to"; done; touch /data/x && echo /data')
figure writable "${refused//$'\n'/ }" "/data, and nothing else" "$(holds test "$refused" = /data)"
healthy=0
(inside /usr/bin/statehouse check health --url "$url") >"$scratch/health.log" 2>&1 || healthy=$?
figure health "exit code $healthy" "0 of statehouse check health, as the image asks" "$(holds test "$healthy" = 0)"
kill -TERM $server
ended=0
wait $server || ended=$?
server=
figure stop "exit code $ended" "0 after SIGTERM" "$(holds test "$ended" = 0)"
exit $short

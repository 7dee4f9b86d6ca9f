#!/usr/bin/env bash
# Tries the Debian package as a user meets it: in a clean Debian, made for this and removed afterwards.
#
#   bash packaging/try-deb.sh target/package/statehouse_0.1.0_amd64.deb
#
# It follows docs/install.md: installs the package, makes a certificate, starts the command as the unit would (no systemd runs in a
# chroot: the user, its groups, the rights and the filter of system calls are set by as-unit.py), writes with a token over TLS by curl,
# reads the settings and a new certificate again, starts again, and purges. It needs root, debootstrap, a mirror of Debian,
# python3-seccomp and systemd-analyze, which looks at the unit as installed.
#
# Prints a line for each figure: `show secure package.<what> <found> (goal <goal>) ok|short`. Exits with 1 if one is short.
set -euo pipefail

deb="$(realpath "$1")"
here="$(dirname "$(realpath "${BASH_SOURCE[0]}")")"
suite="${SUITE:-bookworm}"
mirror="${MIRROR:-http://deb.debian.org/debian}"
# One of those that systemd gives to services with DynamicUser.
user=61842
port=17420
name=state.internal
url="https://$name:$port"
short=0

scratch="$(mktemp -d)"
root="$scratch/root"
server=
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    umount "$root/proc" 2>/dev/null || true
    rm -rf "$scratch"
}
trap cleanup EXIT

figure() { # what found goal holds
    local verdict=ok
    if [ "$4" != yes ]; then verdict=short short=1; fi
    printf 'show secure package.%s %s (goal %s) %s\n' "$1" "$2" "$3" "$verdict"
}
holds() { if "$@"; then echo yes; else echo no; fi; }
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }

debootstrap --variant=minbase --include=ca-certificates,curl,jq,openssl,systemd,procps "$suite" "$root" "$mirror" >"$scratch/debootstrap.log" 2>&1 ||
    { tail "$scratch/debootstrap.log"; exit 2; }
mount -t proc proc "$root/proc"
cp "$deb" "$root/tmp/statehouse.deb"

# From here on, what the page says.
began=$(date +%s%N)
inside apt-get install -y -qq --no-install-recommends /tmp/statehouse.deb >"$scratch/install.log" 2>&1 ||
    { tail "$scratch/install.log"; exit 2; }

inside statehouse cert ca --dir /etc/statehouse/tls >"$scratch/cert.log"
inside statehouse cert server "$name" --dir /etc/statehouse/tls >>"$scratch/cert.log"
inside chmod g+r /etc/statehouse/tls/server.pem /etc/statehouse/tls/server.key
sed -i -e "s|^# hosts = .*|hosts = [\"$name\"]|" -e 's/^# tls_/tls_/' "$root/etc/statehouse/statehouse.toml"

# As the unit: its user, its rights, its folders, its settings; another port, since a chroot shares those of this machine.
unit="$root/lib/systemd/system/statehouse.service"
install -d -m 0700 -o $user -g $user "$root/var/lib/statehouse"
start() {
    env -i PATH=/usr/bin:/bin STATEHOUSE_SERVER__LISTEN="127.0.0.1:$port" \
        /usr/bin/python3 "$here/as-unit.py" "$unit" "$root" $user /usr/bin/statehouse serve --config /etc/statehouse/statehouse.toml >"$scratch/server.out" 2>"$scratch/server.log" &
    server=$!
    for _ in $(seq 300); do
        [ "$(ask -o /dev/null -w '%{http_code}' "$url/readyz")" != 200 ] || return 0
        kill -0 $server 2>/dev/null || break
        sleep 0.1
    done
    echo "it is not ready:"
    cat "$scratch/server.log"
    exit 2
}
# A client that has the certificate of the authority, and finds the name here.
ask() { inside curl -s --cacert /etc/statehouse/tls/ca.pem --resolve "$name:$port:127.0.0.1" "$@"; }
token() { inside cat /var/lib/statehouse/root.token; }
stop() { kill -TERM $server; wait $server; server=; }
start
written=$(ask -o /dev/null -w '%{http_code}' -X PUT "$url/v1/cells/greeting" -d '"hello"' -H "Authorization: Bearer $(token)")
seconds=$(( ($(date +%s%N) - began) / 1000000 ))
figure first-write "$written after $seconds ms from the installation on" "201 over TLS within 60 s" \
    "$(holds test "$written" = 201 -a "$seconds" -lt 60000)"

refused=$(ask "$url/v1/cells/greeting" | jq -r .code)
figure stranger "$refused" "SH-6001: without a token, nothing" "$(holds test "$refused" = SH-6001)"
modes=$(stat -c '%a %u' "$root/var/lib/statehouse/root.token" "$root/var/lib/statehouse" | paste -sd, | sed 's/,/, /')
figure modes "$modes" "600 and 700, of the service" "$(holds test "$modes" = "600 $user, 700 $user")"
status=$(awk '/^(NoNewPrivs|CapBnd|CapEff|Seccomp):/ { printf "%s %s ", $1, $2 }' "/proc/$server/status")
figure rights "$status" "no capability, none to gain, calls filtered" \
    "$(holds test "$status" = "CapEff: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1 Seccomp: 2 ")"

# A change of the settings, as `systemctl reload` would have it read.
sed -i 's/^log = .*/log = "debug"/' "$root/etc/statehouse/statehouse.toml"
kill -HUP $server
sleep 1
figure reload "$(grep -c 'the settings were read again' "$scratch/server.log")" "1: SIGHUP reads the settings again" \
    "$(holds grep -q 'the settings were read again' "$scratch/server.log")"

# A certificate that is replaced while it runs, as its user.
serial() { inside sh -c "echo | openssl s_client -connect 127.0.0.1:$port -servername $name 2>/dev/null | openssl x509 -noout -serial"; }
before=$(serial)
inside rm /etc/statehouse/tls/server.pem /etc/statehouse/tls/server.key
inside statehouse cert server "$name" --dir /etc/statehouse/tls >>"$scratch/cert.log"
inside chmod g+r /etc/statehouse/tls/server.pem /etc/statehouse/tls/server.key
kill -HUP $server
sleep 1
after=$(serial)
figure certificate "$(holds test -n "$after" -a "$before" != "$after")" "yes: a new certificate is used after SIGHUP" \
    "$(holds test -n "$after" -a "$before" != "$after")"

stop
start
kept=$(ask "$url/v1/cells/greeting" -H "Authorization: Bearer $(token)" | jq -r .value)
figure restart "$kept" "hello: what was written is there after a restart" "$(holds test "$kept" = hello)"
stop

exposure=$(systemd-analyze security --offline=true --root="$root" statehouse.service 2>/dev/null | sed -n 's/.*Overall exposure level for statehouse.service: \([0-9.]*\) .*/\1/p')
figure exposure "$exposure" "below 2.0 (systemd-analyze security --offline)" "$(holds awk "BEGIN { exit !(\"$exposure\" != \"\" && $exposure + 0 < 2.0) }")"
wrong=$(systemd-analyze verify --root="$root" statehouse.service 2>&1 | grep -c statehouse.service || true)
figure unit "$wrong complaints" "0 of systemd-analyze verify" "$(holds test "$wrong" = 0)"

inside apt-get purge -y -qq statehouse >"$scratch/purge.log" 2>&1
left=$(cd "$root" && find usr lib etc -path '*statehouse*' -not -type d -not -path 'etc/statehouse/tls/*' 2>/dev/null | wc -l)
kept=$(holds test -s "$root/var/lib/statehouse/root.token" -a -s "$root/etc/statehouse/tls/server.key")
figure purge "$left files left, data and key kept: $kept" "0; what only the administrator has stays" "$(holds test "$left $kept" = "0 yes")"
exit $short

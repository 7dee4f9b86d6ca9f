#!/usr/bin/env bash
# A worker is killed with kill -9. Its job comes back, and what it sent before it died is refused.
#
#   examples/kill_worker.sh
#
# Needs `statehouse`, `curl` and `jq` in the path. Starts `statehouse dev` on a free port, and stops it at the end; takes about
# five seconds. docs/images/kill-worker.svg shows what it prints.
set -euo pipefail

# The second role of this script: a worker that claims one job for two seconds and then works for the given time. It is one
# process, so that `kill -9` leaves nothing of it.
if [ "${1:-}" = worker ]; then
    name=$2 seconds=$3
    claim='{"prefix":"mail.","worker":"'$name'","lease":"2s","wait":"30s"}'
    curl -s "$STATEHOUSE_URL/v1/claims" -d "$claim" >"$name.json"
    echo "$name: claimed $(jq -r '.claimed[0] | "\(.record), attempt \(.attempt)"' "$name.json")"
    touch "$name.works"
    read -rt "$seconds" <> <(:) || true
    token=$(jq -r '.claimed[0].token' "$name.json")
    curl -s "$STATEHOUSE_URL/v1/attempts/complete" -d '{"token":"'"$token"'","fields":{"sent_by":"'"$name"'"}}' |
        jq -r --arg name "$name" 'if .code then "\($name): refused, \(.code)" else "\($name): completed it" end'
    exit
fi

for needed in statehouse curl jq; do
    command -v $needed >/dev/null || { echo "kill_worker.sh: $needed is not in the path" >&2; exit 2; }
done
script=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
unset STATEHOUSE_DATA STATEHOUSE_CONTEXT STATEHOUSE_CONFIG
folder=$(mktemp -d)
cd "$folder"
end() {
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    rm -rf "$folder"
}
statehouse dev --random-ports >server.log 2>&1 &
server=$!
trap end EXIT
for _ in {1..300}; do
    address=$(grep -o 'address":"[^"]*' server.log 2>/dev/null | cut -d'"' -f3) && break
    sleep 0.1
done
export STATEHOUSE_URL="http://${address:?the server did not start}"
house=$STATEHOUSE_URL/v1

# In the background it takes the place of its shell, so that `$!` is the worker itself.
worker() {
    if [ "$BASHPID" = "$$" ]; then bash "$script" worker "$@"; else exec bash "$script" worker "$@"; fi
}
wait_for() { until [ -e "$1" ]; do sleep 0.02; done; }
say() { printf '\n# %s\n' "$1"; }
# Prints a command as it would be typed, and runs it.
show() {
    printf '$ %s\n' "$1"
    eval "$1"
}

echo '# A job, and a worker that needs a minute for it.'
show 'statehouse rec set mail.1 to=ann@example.org --type task'
show 'worker w1 60 &'
w1=$!
wait_for w1.works
show 'statehouse rec count mail.'

say 'The worker dies, and can tell nobody.'
show 'kill -9 $w1'
{ wait "$w1" || true; } 2>/dev/null

say 'Its lease ends after two seconds. Then the next worker gets the job.'
show 'worker w2 0'

say 'A write that w1 sent before it died arrives only now.'
token=$(jq -r '.claimed[0].token' w1.json)
late='{"token":"'$token'","fields":{"sent_by":"w1"}}'
show 'curl -s $house/attempts/complete -d "$late" | jq -c "{status, code, outcome}"'
show 'statehouse rec get mail.1 -o json | jq -r .fields.sent_by'

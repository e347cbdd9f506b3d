#!/usr/bin/env bash
# Runs the real clients against the server, all suites or those that are named, and fails when one does.
#
#   compat/run.sh [rest46 rest51 sdk mcp ownmcp mcptools ledger socket031 socket041 frames node s3 fuzz transcript litellm]
#
#   BANDSTAND_BIN         the server (default: target/debug/bandstand of this repository)
#   COMPAT_ENGINE         sqlite (default) or postgres
#   COMPAT_DATABASE_URL   a PostgreSQL in which databases may be made; without it, a private one is started
set -euo pipefail

fail() {
    echo "compat/run.sh: $*" >&2
    exit 2
}

repository=$(cd "$(dirname "$0")/.." && pwd)
BANDSTAND_BIN=$(realpath -m "${BANDSTAND_BIN:-$repository/target/debug/bandstand}")
export BANDSTAND_BIN COMPAT_ENGINE=${COMPAT_ENGINE:-sqlite}
cd "$repository/compat"
[[ -x $BANDSTAND_BIN ]] || fail "no server at $BANDSTAND_BIN: build it (cargo build) or set BANDSTAND_BIN"
./setup.sh

postgres_folder=
as_postgres() { if [[ $EUID -eq 0 ]]; then runuser -u postgres -- "$@"; else "$@"; fi; }

start_postgres() {
    local binaries port
    binaries=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin | sort --version-sort | tail -n 1)
    [[ -n $binaries ]] || fail "PostgreSQL is missing (on Debian: apt-get install postgresql), or set COMPAT_DATABASE_URL"
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    postgres_folder=$(mktemp --directory)
    [[ $EUID -eq 0 ]] && chown postgres "$postgres_folder"
    as_postgres "$binaries/initdb" --pgdata "$postgres_folder/data" --auth trust --username postgres --encoding UTF8 \
        --locale C.UTF-8 --no-sync >/dev/null
    as_postgres "$binaries/pg_ctl" start --silent --wait --timeout 30 --pgdata "$postgres_folder/data" \
        --log "$postgres_folder/log" --options \
        "-p $port -k $postgres_folder -c listen_addresses=127.0.0.1 -c max_connections=300" ||
        fail "PostgreSQL does not start: $(tail -n 5 "$postgres_folder/log")"
    export COMPAT_DATABASE_URL="postgres://postgres@127.0.0.1:$port/postgres"
}

stop_postgres() {
    [[ -n $postgres_folder ]] || return 0
    local process
    if process=$(head -n 1 "$postgres_folder/data/postmaster.pid" 2>/dev/null); then
        kill -INT "$process" # a fast shutdown: sessions are ended
        timeout 30 tail --pid="$process" --follow /dev/null || kill -QUIT "$process"
    fi
    rm -rf "$postgres_folder"
}

case $COMPAT_ENGINE in
sqlite) ;;
postgres) [[ -n ${COMPAT_DATABASE_URL:-} ]] || { trap stop_postgres EXIT && start_postgres; } ;;
*) fail "COMPAT_ENGINE is sqlite or postgres, not $COMPAT_ENGINE" ;;
esac

pytest() {
    local environment=$1
    shift
    ".venv-$environment/bin/python" -m pytest --quiet "$@"
}

run_suite() {
    case $1 in
    rest46) pytest rest46 rest --ignore rest/newest ;;
    rest51) pytest rest51 rest ;;
    sdk)
        # Both SDKs play the same scripts; the Rust one is a program of its own.
        cargo build --quiet --locked -p bandstand-agent --example scripted && pytest sdk sdk
        ;;
    mcp) pytest mcp mcp_stdio tokens ;;
    ownmcp) pytest mcp mcp_own ;;
    mcptools) pytest mcp mcp_tools ;;
    ledger) pytest mcp ledger ;;
    socket031) pytest rest46 sockets/client ;;
    socket041) pytest rest51 sockets/client ;;
    frames) pytest sdk sockets/frames ;;
    node) (cd node && node --test --test-reporter=spec) ;;
    s3) pytest s3 s3_store ;;
    fuzz) pytest fuzz -c fuzz/pytest.ini --rootdir fuzz fuzz ;;
    transcript)
        cargo build --quiet --locked -p bandstand-transcript --example transcript_bridge &&
            pytest transcript -c transcript/pytest.ini --rootdir transcript transcript
        ;;
    litellm)
        # The proxy has an environment of its own; its tests are clients of the server as all others are.
        cargo build --quiet --locked -p bandstand-testkit --example scripted_model && pytest rest51 litellm_proxy
        ;;
    *) fail "no suite is called $1" ;;
    esac
}

suites=("$@")
[[ $# -gt 0 ]] || suites=(rest46 rest51 sdk mcp ownmcp mcptools ledger socket031 socket041 frames node s3 fuzz transcript litellm)
failed=()
for suite in "${suites[@]}"; do
    echo "== $suite ($COMPAT_ENGINE)"
    started=$SECONDS
    run_suite "$suite" || failed+=("$suite")
    echo "== $suite took $((SECONDS - started)) s"
done
[[ ${#failed[@]} -eq 0 ]] || { echo "failed: ${failed[*]}" >&2 && exit 1; }

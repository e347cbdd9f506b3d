#!/usr/bin/env bash
# Makes the environments of the suites from their lock files, and does nothing where they are up to date.
set -euo pipefail
cd "$(dirname "$0")"

fail() {
    echo "compat/setup.sh: $*" >&2
    exit 1
}

command -v python3 >/dev/null || fail "python3 is missing (3.11 or newer)"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "$(python3 --version) is too old: 3.11 or newer is needed"
command -v node >/dev/null || fail "node is missing (20 or newer)"
command -v npm >/dev/null || fail "npm is missing (it comes with node)"
[[ $(node --version) =~ ^v([0-9]+) && ${BASH_REMATCH[1]} -ge 20 ]] || fail "node $(node --version) is too old: 20 or newer is needed"

# What an environment was made from; another lock or another interpreter makes it anew.
made_from() { sha256sum | cut -d ' ' -f 1; }

python_environment() {
    local name=$1 lock=locks/$1.txt folder=.venv-$1 wanted
    wanted=$({ cat "$lock" && python3 --version; } | made_from)
    [[ -f $folder/made-from && $(<"$folder/made-from") == "$wanted" ]] && return
    echo "compat: making $folder from $lock"
    rm -rf "$folder"
    python3 -m venv "$folder" || fail "python3 cannot make $folder (on Debian: apt-get install python3-venv)"
    # The lock is the whole truth: nothing is resolved, and what does not fit together is an error.
    "$folder/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$lock" ||
        fail "the packages of $lock cannot be installed (is PyPI within reach?)"
    "$folder/bin/pip" check >/dev/null || fail "the packages of $lock do not fit together: $("$folder/bin/pip" check)"
    echo "$wanted" >"$folder/made-from"
}

node_environment() {
    local wanted
    wanted=$({ cat node/package-lock.json && node --version; } | made_from)
    [[ -f node/node_modules/made-from && $(<node/node_modules/made-from) == "$wanted" ]] && return
    echo "compat: making node/node_modules from node/package-lock.json"
    npm ci --prefix node --omit=dev --no-audit --no-fund --silent ||
        fail "the packages of node/package-lock.json cannot be installed (is npm's registry within reach?)"
    echo "$wanted" >node/node_modules/made-from
}

for name in rest46 rest51 sdk mcp s3 fuzz transcript litellm; do
    python_environment "$name"
done
node_environment

#!/usr/bin/env bash
# The tests as on other machines: `make test-portable`; a part of them, for CI: `make test-portable SIZE=small`.
# What each setting does is said in tests/support/portable.py.
set -euo pipefail
cd "$(dirname "$0")/.."

numerical=(tests/theory tests/mdp tests/evaluation tests/reproduction tests/engine)
cores=(Nehalem Haswell)
if grep -qw avx512f /proc/cpuinfo; then cores+=(SkylakeX); fi

run() { # run "SETTING=VALUE ..." TESTS
    echo "== $1"
    env $1 OPENBLAS_NUM_THREADS=1 .venv/bin/pytest -n 2 --dist loadfile -m "not slow" "${@:2}"
}

if [ "${SIZE:-}" = small ]; then
    run "OPENBLAS_CORETYPE=Nehalem COLUMNS=60" tests/theory/test_t*.py tests/evaluation/test_findings.py tests/evaluation/test_sentences.py
    run "OPENBLAS_CORETYPE=Haswell STEADYTD_TEST_JITTER=1" tests/theory/test_t*.py tests/mdp
    exit
fi

for core in "${cores[@]}"; do run "OPENBLAS_CORETYPE=$core" "${numerical[@]}"; done
run STEADYTD_TEST_JITTER=1 "${numerical[@]}"

# The oldest versions that pyproject.toml allows. What is deprecated in what they use is not ours to mend.
uv=$(command -v uv || echo .venv/bin/uv)
$uv venv --quiet --allow-existing --python .venv/bin/python build/lowest
$uv pip install --quiet --python build/lowest/bin/python --resolution lowest-direct --editable '.[dev]'
echo "== the oldest versions"
OPENBLAS_NUM_THREADS=1 build/lowest/bin/pytest -n 2 --dist loadfile -m "not slow" --ignore tests/browser \
    -W default::DeprecationWarning

# A plain processor, a narrow terminal, no locale, private files, a home that nobody may write to, and a
# checkout in a directory with spaces and letters beyond ASCII.
place=$(mktemp -d)/"größe ±1 (copy)"
trap 'rm -rf "$(dirname "$place")"' EXIT
mkdir "$place"
git ls-files --cached --others --exclude-standard -z | xargs -0 cp --parents -t "$place"
cd "$place"
make .venv/.installed-dev
umask 077
export STEADYTD_CACHE_DIR=$place/kernels
odd="NUMBA_CPU_NAME=generic COLUMNS=60 LANG=C LC_ALL= HOME=/proc"
env $odd make kernels
run "$odd" "${numerical[@]}" tests/base tests/cli

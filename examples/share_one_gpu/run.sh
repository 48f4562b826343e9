#!/usr/bin/env bash
# Two programs that allocate 90 % of the GPU each, at the same time, first without Ration and then under it.
# run.sh [--sim] BUILD: on the real GPU if there is one, else (or with --sim) on a simulated one of 16 GiB.
# Last line: `demo: ok device=… a_total=… a_peak=… b_total=… b_peak=…` or `demo: FAILED …`. Logs: BUILD/demo/[ab].jsonl
set -u
here=$(cd "$(dirname "$0")" && pwd)
may_use_gpu=yes
[ "${1:-}" = --sim ] && { may_use_gpu=no; shift; }
[ $# = 1 ] || { echo "usage: run.sh [--sim] BUILD" >&2; exit 2; }
build=$(cd "$1" && pwd)
demo=$build/demo
programs=$build/examples/share_one_gpu
a_limit=40%
b_limit=50%
seconds_at_most=120

failed() {
  echo "demo: FAILED $*"
  exit 1
}

has_gpu() {
  compgen -G '/dev/nvidia[0-9]*' >/dev/null || [ -e /dev/dxg ] || return 1
  python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL("libcuda.so.1").cuInit(0) != 0)' 2>/dev/null
}

choose_device() {
  a_program=$programs/driver_fill
  b_program=$build/bin/ration-example
  if [ $may_use_gpu = yes ] && has_gpu; then
    device=gpu
    [ -x "$programs/runtime_fill_toolkit" ] && b_program=$programs/runtime_fill_toolkit
    echo "demo: on this machine's GPU"
  else
    device=sim
    export SIMCUDA_DEVICES=16GiB SIMCUDA_MACHINE=$demo/machine
    export LD_LIBRARY_PATH=$build/lib/ration/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    echo "demo: on a simulated GPU of $SIMCUDA_DEVICES"
  fi
}

# start NAME COMMAND...: in the background, its stdin held open in ${hold[NAME]}, its stdout in $demo/NAME.out.
declare -A hold process status
start() {
  local name=$1 other fd
  shift
  rm -f "$demo/$name.stdin" "$demo/$name.out"
  mkfifo "$demo/$name.stdin" || failed "no named pipe in $demo"
  (
    for other in "${hold[@]}"; do exec {other}>&-; done
    exec timeout --foreground $((2 * seconds_at_most)) "$@" <"$demo/$name.stdin" >"$demo/$name.out" 2>"$demo/$name.err"
  ) &
  process[$name]=$!
  exec {fd}>"$demo/$name.stdin"
  hold[$name]=$fd
}

# wait_for NAME WORD: waits until NAME has printed `NAME: WORD …`, or has ended.
wait_for() {
  local deadline=$((SECONDS + seconds_at_most))
  while ! grep -q "^$1: $2" "$demo/$1.out" && kill -0 "${process[$1]}" 2>/dev/null; do
    [ $SECONDS -lt $deadline ] || failed "$1 made no progress in $seconds_at_most s"
    sleep 0.05
  done
}

# go_on NAME: starts its next step; ignored if it has ended.
go_on() { (trap '' PIPE; echo >&"${hold[$1]}") 2>/dev/null; }

# finish NAME: lets it run to its end and prints its output.
finish() {
  local fd=${hold[$1]}
  exec {fd}>&-
  unset "hold[$1]"
  wait "${process[$1]}"
  status[$1]=$?
  sed 's/^/    /' "$demo/$1.out" "$demo/$1.err"
}

# Both at the same time: b starts when a holds its 90 %. Both allocate the rest when both hold theirs. Neither frees
# anything before both are full (or b has failed).
run_pair() {
  rm -rf "$demo/machine"
  mkdir -p "$demo/machine"
  start a "${a_command[@]}"
  wait_for a holds
  start b "${b_command[@]}"
  wait_for b holds
  go_on a
  go_on b
  wait_for a "is full"
  wait_for b "is full"
  finish a
  finish b
  rm -rf "$demo/machine" "$demo"/[ab].stdin
}

rm -rf "$demo"
mkdir -p "$demo"
choose_device

echo "demo: without Ration, a and b each plan for 90 % of the same device"
a_command=("$a_program" a)
b_command=("$b_program" b)
run_pair
[ "${status[b]}" != 0 ] || failed "without Ration both programs got 90 % of one device"
grep -q '^b: FAILED: out of memory' "$demo/b.out" || failed "without Ration b ended otherwise than out of memory"
echo "demo: as expected: there was nothing left for b"
for name in a b; do cp "$demo/$name.out" "$demo/$name.without.out"; done

echo "demo: with Ration, a is held to $a_limit and b to $b_limit"
a_command=("$build/bin/ration" run --limit $a_limit --log "$demo/a.jsonl" -- "$a_program" a)
b_command=("$build/bin/ration" run --limit $b_limit --log "$demo/b.jsonl" -- "$b_program" b)
run_pair
[ "${status[a]}${status[b]}" = 00 ] || failed "under Ration a ended with ${status[a]} and b with ${status[b]}"
exec python3 "$here/check.py" "$device" "$demo" $a_limit $b_limit

#!/bin/sh
# Slurm's TaskProlog for sites that cannot load plug-ins: holds each step that has shards of a GPU to its part of the
# device's memory. Slurm runs it as the user, before each task, and reads `export`, `unset` and `print` lines from its
# output. Fails closed: Slurm starts no task whose TaskProlog has failed.

# These four are the site's.
library=/opt/ration/lib/libration.so
shards=4    # of one GPU, as gres.conf says
margin=5    # percent of a GPU that is left to contexts
state=      # the folder of the ledgers; empty: Ration's own default, of each user

refuse() {
  echo "print ration: step $job.$step is not started: $1"
  exit 1
}

# Takes back what was set here for the step that has started this one, which has no share.
leave_alone() {
  case ${RATION_GROUP-} in slurm-*) ;; *) exit 0 ;; esac
  rest=$(without_library)
  if [ -n "$rest" ]; then echo "export LD_PRELOAD=$rest"; else echo "unset LD_PRELOAD"; fi
  for name in GROUP GROUP_LIMIT GROUP_TREE LIMIT GUARANTEE MANAGED STATE_DIR; do
    echo "unset RATION_$name"
  done
  exit 0
}

# The user's own LD_PRELOAD.
without_library() (
  set -f
  IFS=': '
  rest=
  for item in ${LD_PRELOAD-}; do
    [ "$item" = "$library" ] || rest=$rest${rest:+:}$item
  done
  echo "$rest"
)

# How many tasks the step has on this node: 2(x3),1 is of four nodes.
tasks_here() (
  set -f
  IFS=,
  node=${SLURM_NODEID:-0}
  for item in ${SLURM_STEP_TASKS_PER_NODE:-1}; do
    times=1
    case $item in *x*) times=${item##*x} times=${times%)} ;; esac
    [ "$node" -lt "$times" ] && echo "${item%%(*}" && return
    node=$((node - times))
  done
  echo 1
)

percent() { printf '%d.%04d%%' $(($1 / 10000)) $(($1 % 10000)); }

job=$SLURM_JOB_ID
# No variable tells a batch script from a step, but Slurm names the process that runs this: slurmstepd: [5.batch]. The
# shell of salloc is one too, where the site starts it on the node.
step=$SLURM_STEP_ID
read -r parent </proc/$PPID/cmdline || [ -n "$parent" ] || refuse "its process in /proc cannot be read"
whole_job=yes
case $parent in
  *.batch]*) step=batch ;;
  *.interactive]*) step=interactive ;;
  *) whole_job=no ;;
esac
held=${SLURM_SHARDS_ON_NODE:-0}
if [ "$held" = 0 ]; then leave_alone; fi

if [ "$held" -gt "$shards" ] || [ "${SLURM_GPUS_ON_NODE:-1}" -gt 1 ]; then
  refuse "it has $held shards on ${SLURM_GPUS_ON_NODE:-1} GPUs, and shares are of one GPU, which has $shards"
fi
case $library in *[:\ ]*) refuse "the path of the library '$library' has a space or a colon" ;; esac
[ "${library##*/}" = libration.so ] || refuse "the library '$library' is not libration.so"
[ -r "$library" ] || refuse "the library '$library' is missing, or not readable"
[ -r "${library%/*}/libration-core.so" ] || refuse "libration-core.so is missing beside '$library', or not readable"
# The dynamic loader complains of what it cannot load, and starts the program nevertheless.
wrong=$(/usr/bin/env -i LD_PRELOAD="$library" /bin/true 2>&1)
[ -z "$wrong" ] || refuse "$(echo "$wrong" | tr '\n' ' ')"

share=$((held * (100 - margin) * 10000 / shards)) # in ten-thousandths of a percent
limit=$(percent $share)
# `ration ps` shows the first eight of 16 digits. A job of a federation has more.
if [ "$job" -lt 100000000 ]; then tree=$(printf '%08d00000000' "$job"); else tree=$(printf '%08x00000001' "$job"); fi
rest=$(without_library)
echo "export LD_PRELOAD=$library${rest:+:$rest}"
echo "export RATION_GROUP=slurm-$job.$step"
echo "export RATION_GROUP_LIMIT=$limit"
echo "export RATION_LIMIT=$limit"
echo "export RATION_MANAGED=limit"
echo "unset RATION_DISABLE"
if [ -n "$state" ]; then echo "export RATION_STATE_DIR=$state"; else echo "unset RATION_STATE_DIR"; fi
# All steps of the job together, which inherit it.
if [ $whole_job = yes ]; then
  echo "export RATION_GROUP_TREE=$tree=$limit"
else
  case ${RATION_GROUP_TREE-} in "$tree="*) ;; *) echo "unset RATION_GROUP_TREE" ;; esac
fi
# Each of several tasks has its part, and may take what the others leave.
tasks=1
[ $whole_job = yes ] || tasks=$(tasks_here)
if [ "$tasks" -gt 1 ]; then
  echo "export RATION_GUARANTEE=$(percent $((share / tasks)))"
else
  echo "unset RATION_GUARANTEE"
fi

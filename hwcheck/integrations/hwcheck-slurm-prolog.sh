#!/bin/sh
# Slurm prolog: no job starts on a node that is not ready.
#
#   slurm.conf:  Prolog=/etc/slurm/hwcheck-slurm-prolog.sh
#                PrologFlags=Alloc
#
# Where this ends with 1, slurmd drains the node ("Prolog error") and the job is queued again. What could not be told
# (exit code 3, or hwcheck itself broken) lets the job start: the gate makes a no of it when it repeats. No command of
# Slurm is called here: a prolog of every node at once would ask slurmctld for more than it can answer.
#
# HWCHECK       the command (default: hwcheck)
# HWCHECK_GATE  options of the gate, separated by blanks

said=$(${HWCHECK:-hwcheck} gate -q ${HWCHECK_GATE:-} 2>/dev/null)
code=$?
[ -z "$said" ] || logger -t hwcheck-prolog -- "$said" 2>/dev/null
case $code:$said in
    "1:not ready: "*) exit 1 ;;
esac
exit 0

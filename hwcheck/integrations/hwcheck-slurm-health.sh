#!/bin/sh
# Slurm health check: drains the node that is not ready, with the reason, and undrains it once it is ready again.
#
#   slurm.conf:  HealthCheckProgram=/etc/slurm/hwcheck-slurm-health.sh
#                HealthCheckInterval=300
#                HealthCheckNodeState=ANY
#
# Slurm ignores the exit code of a health check, so this speaks to slurmctld itself. A drain is ours when its reason
# begins with "hwcheck: "; a drain of anybody else, and one whose reason somebody has changed, is left alone. What could
# not be told (exit code 3, or hwcheck itself broken) changes nothing.
#
# HWCHECK       the command (default: hwcheck)
# HWCHECK_GATE  options of the gate, separated by blanks
# SCONTROL      the command (default: scontrol)

node=${SLURMD_NODENAME:-$(hostname -s)}
mark='hwcheck: '

# A slurmctld that does not answer must not hold slurmd up.
ask() { timeout 10 "${SCONTROL:-scontrol}" "$@"; }

said=$(${HWCHECK:-hwcheck} gate -q ${HWCHECK_GATE:-} 2>/dev/null)
code=$?

case $code:$said in
    "1:not ready: "*) verdict=no ;;
    "0:ready: "*) verdict=yes ;;
    *) exit 0 ;;
esac

# Read after the gate: an operator may have drained the node while it looked.
shown=$(ask show node "$node") || exit 0
state=$(printf '%s\n' "$shown" | sed -n 's/.*State=\([A-Z+*@#~$%!^-]*\).*/\1/p' | head -n 1)
reason=$(printf '%s\n' "$shown" | sed -n 's/^ *Reason=//p' | head -n 1)
case $reason in "$mark"*) ours=yes ;; *) ours='' ;; esac
case $state in *DRAIN*) drained=yes ;; *) drained='' ;; esac

if [ "$verdict" = no ]; then
    # One line, without what Slurm would take for a field of its own.
    text=$(printf '%s' "${said#not ready: }" | tr -d '"\\' | tr '\n\t' '  ' | cut -c 1-200)
    # "root@TIME" in brackets stands behind the reason.
    case $reason in "$mark$text "*) same=yes ;; *) same='' ;; esac
    if [ -z "$drained" ] || { [ -n "$ours" ] && [ -z "$same" ]; }; then
        ask update NodeName="$node" State=DRAIN Reason="$mark$text"
    fi
elif [ -n "$drained" ] && [ -n "$ours" ]; then
    ask update NodeName="$node" State=UNDRAIN
fi
exit 0

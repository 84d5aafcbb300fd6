#!/bin/sh
# Plugin of node-problem-detector: 0 no problem, 1 a problem, 2 unknown, and one line of at most 80 characters.
#
# HWCHECK       the command (default: hwcheck)
# HWCHECK_GATE  options of the gate, separated by blanks

said=$(${HWCHECK:-hwcheck} gate -q ${HWCHECK_GATE:-} 2>/dev/null)
code=$?
[ -n "$said" ] || said="hwcheck gate ended with $code and said nothing"
printf '%s\n' "$said" | head -n 1 | cut -c 1-80
case $code:$said in
    "0:ready: "*) exit 0 ;;
    "1:not ready: "*) exit 1 ;;
esac
exit 2

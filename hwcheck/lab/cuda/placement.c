/*
 * CPUs and memory nodes of a lab node for its programs: preloaded, since the kernel below has other ones.
 *
 * A thread may bind itself to CPUs that the node shows and this machine lacks, and to memory of its NUMA nodes; it is then
 * told that it is bound, and the lab's CUDA library asks here where. Nothing is scheduled by it. A program that is run from
 * there inherits the CPUs by $HWCHECK_LAB_CPUS, as taskset(1) needs it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "node.h"

#define EXPORT __attribute__((visibility("default")))
#define CPUS "HWCHECK_LAB_CPUS"
#define SESSIONS "root/sys/fs/cgroup/user.slice/cpuset.cpus.effective"
#define MOST_CPUS 1024
#define BIND 2

static __thread cpu_set_t own_cpus;
static __thread int bound, own_memory = -1;

static int is_mine(pid_t pid) { return pid == 0 || pid == getpid() || pid == gettid(); }

/* Begins with the CPUs that are left to sessions, or with those that a program was run with. */
static void inherit(void)
{
    char confined[TEXT];
    const char *list = getenv(CPUS);
    node_find();
    if (bound || (!list && !node_text(confined, SESSIONS)))
        return;
    list = list ? list : confined;
    for (int cpu = 0; cpu < MOST_CPUS; cpu++)
        if (has_number(list, cpu))
            CPU_SET(cpu, &own_cpus);
    bound = 1;
}

static void leave_to_heirs(void)
{
    char list[8 * MOST_CPUS] = "";
    int length = 0;
    for (int cpu = 0; cpu < MOST_CPUS; cpu++)
        if (CPU_ISSET(cpu, &own_cpus))
            length += snprintf(list + length, sizeof list - (size_t)length, "%s%d", length ? "," : "", cpu);
    setenv(CPUS, list, 1);
}

EXPORT int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *cpus)
{
    char online[TEXT];
    char sessions[TEXT];
    cpu_set_t wanted;
    int confined;
    node_find();
    if (!is_mine(pid) || !node_text(online, "root/sys/devices/system/cpu/online"))
        return (int)syscall(SYS_sched_setaffinity, pid, size, cpus);
    confined = node_text(sessions, SESSIONS);
    CPU_ZERO(&wanted);
    for (int cpu = 0; cpu < MOST_CPUS && (size_t)cpu < 8 * size; cpu++)
        if (CPU_ISSET_S(cpu, size, cpus) && has_number(online, cpu) && (!confined || has_number(sessions, cpu)))
            CPU_SET(cpu, &wanted);
    if (!CPU_COUNT(&wanted)) {
        errno = EINVAL;
        return -1;
    }
    own_cpus = wanted;
    bound = 1;
    leave_to_heirs();
    return 0;
}

EXPORT int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *cpus)
{
    long found;
    inherit();
    if (!bound || !is_mine(pid)) {
        found = syscall(SYS_sched_getaffinity, pid, size, cpus);
        if (found > 0)
            memset((char *)cpus + found, 0, size - (size_t)found);
        return found < 0 ? -1 : 0;
    }
    for (int cpu = 0; cpu < MOST_CPUS; cpu++)
        if (CPU_ISSET(cpu, &own_cpus) && (size_t)cpu >= 8 * size) {
            errno = EINVAL;
            return -1;
        }
    memset(cpus, 0, size);
    memcpy(cpus, &own_cpus, size < sizeof own_cpus ? size : sizeof own_cpus);
    return 0;
}

static long set_memory(long mode, const unsigned long *mask, unsigned long bits)
{
    own_memory = -1;
    for (unsigned long node = 0; mode == BIND && mask && node < bits; node++)
        if (mask[node / (8 * sizeof *mask)] >> node % (8 * sizeof *mask) & 1) {
            if (!node_has("root/sys/devices/system/node/node%lu", node)) {
                errno = EINVAL;
                return -1;
            }
            own_memory = (int)node;
            break;
        }
    return 0;
}

EXPORT long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long words[6];
    va_list values;
    va_start(values, number);
    for (int at = 0; at < 6; at++)
        words[at] = va_arg(values, long);
    va_end(values);
    if (number == SYS_set_mempolicy) {
        node_find();
        if (node_has("root/sys/devices/system/node/node0"))
            return set_memory(words[0] & 0xFF, (const unsigned long *)words[1], (unsigned long)words[2]);
    }
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

/* Returns the NUMA node that the calling thread takes memory from: by its policy, else by its CPUs; -1 where it is free. */
EXPORT int hwcheck_lab_numa(void)
{
    inherit();
    if (own_memory >= 0)
        return own_memory;
    return bound ? numa_of_cpus() : -1;
}

/*
 * Files of the lab node that this process runs on.
 *
 * The node's folder is the one above this library's, where its nvml/ is, or /run/hwcheck-lab on a node in host form.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node.h"

#define ON_THE_NODE "/run/hwcheck-lab"
#define HAND "/run/hwcheck-lab-hand" /* the tree once more, writable */

static char folder[TEXT];

void node_find(void)
{
    Dl_info self;
    char *slash, path[2 * TEXT];
    if (folder[0])
        return;
    if (dladdr((void *)node_find, &self) && (slash = strrchr(self.dli_fname, '/'))) {
        snprintf(path, sizeof path, "%.*s/../nvml", (int)(slash - self.dli_fname), self.dli_fname);
        if (access(path, F_OK) == 0) {
            snprintf(folder, sizeof folder, "%.*s/..", (int)(slash - self.dli_fname), self.dli_fname);
            return;
        }
    }
    snprintf(folder, sizeof folder, ON_THE_NODE);
}

static int open_name(int flags, const char *name)
{
    char path[2 * TEXT];
    if (flags != O_RDONLY && !strncmp(name, "root/", 5) && !strcmp(folder, ON_THE_NODE))
        snprintf(path, sizeof path, HAND "/%s", name + 5);
    else
        snprintf(path, sizeof path, "%s/%s", folder, name);
    return open(path, flags | O_CLOEXEC, 0644);
}

#define NAME(name, format) \
    char name[TEXT]; \
    do { \
        va_list values; \
        va_start(values, format); \
        vsnprintf(name, sizeof name, format, values); \
        va_end(values); \
    } while (0)

static int read_name(char *text, const char *name)
{
    ssize_t length;
    int fd = open_name(O_RDONLY, name);
    text[0] = 0;
    if (fd < 0)
        return 0;
    length = read(fd, text, TEXT - 1);
    close(fd);
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
        length--;
    text[length > 0 ? length : 0] = 0;
    return length > 0;
}

int node_has(const char *format, ...)
{
    char path[2 * TEXT];
    NAME(name, format);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* Reads a file into text, which has room for TEXT bytes; tells whether there was any. */
int node_text(char *text, const char *format, ...)
{
    NAME(name, format);
    return read_name(text, name);
}

double node_number(double otherwise, const char *format, ...)
{
    char text[TEXT], *end;
    double value;
    NAME(name, format);
    if (!read_name(text, name))
        return otherwise;
    value = strtod(text, &end);
    return end == text ? otherwise : value;
}

/* Returns the number behind key= in a file of rows. */
double node_row(const char *file, const char *key, double otherwise)
{
    char text[TEXT];
    size_t length = strlen(key);
    if (!read_name(text, file))
        return otherwise;
    for (char *row = text; row; row = strchr(row, '\n') ? strchr(row, '\n') + 1 : NULL)
        if (!strncmp(row, key, length) && row[length] == '=')
            return strtod(row + length + 1, NULL);
    return otherwise;
}

/* Writes a file that is there in place, so that a mount upon it shows it. */
void node_keep(const char *text, const char *format, ...)
{
    int fd;
    NAME(name, format);
    fd = open_name(O_WRONLY | O_TRUNC, name);
    if (fd < 0)
        return;
    if (write(fd, text, strlen(text)) < 0) { /* a full disk: the file is then as short as it would be there */
    }
    close(fd);
}

int node_open(int flags, const char *format, ...)
{
    NAME(name, format);
    return open_name(flags, name);
}

/* Tells whether a list as of the kernel, 0-31,64-95, has a number. */
int has_number(const char *list, int number)
{
    while (*list) {
        char *end;
        long first = strtol(list, &end, 10), last = first;
        if (end == list)
            return 0;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (first <= number && number <= last)
            return 1;
        list = *end == ',' ? end + 1 : end;
        if (*end && *end != ',')
            return 0;
    }
    return 0;
}

/* Gives the address of a GPU as /sys spells it, 0000:18:00.0. */
int node_address(int gpu, char *address)
{
    char text[TEXT];
    if (!node_text(text, "nvml/gpu%d/pci_bus_id", gpu) || strlen(text) < 12)
        return 0;
    for (int at = 4; at <= (int)strlen(text); at++)
        address[at - 4] = text[at] >= 'A' && text[at] <= 'F' ? (char)(text[at] + 32) : text[at];
    return 1;
}

/* Returns the NUMA node of all CPUs that the calling thread may run on; -1 where they are of several. */
int numa_of_cpus(void)
{
    cpu_set_t cpus;
    char list[TEXT];
    int found = -1;
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof cpus, &cpus))
        return -1;
    for (int node = 0; node_text(list, "root/sys/devices/system/node/node%d/cpulist", node); node++)
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &cpus) && has_number(list, cpu)) {
                if (found >= 0)
                    return -1;
                found = node;
                break;
            }
    return found;
}

/*
 * How long a copy or a launch takes on this node, by its state: seconds, always more than 0.
 *
 * What a healthy platform reaches is in live/load (efficiencies against what clocks, widths and lanes give); everything that
 * makes it less is read from where NVML, /sys and configuration space of the lab show it too. How much less a fault makes is
 * the lab's own guess, good enough to be seen: nobody has published it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include "load.h"
#include "node.h"

#define FRESH_SECONDS 0.02
#define LOAD "live/load"
#define HEADER 24.0             /* B of a PCIe packet beside its payload */
#define ACS_AT 0x148            /* where the lab's ports have the capability */
#define ACS_ID 0x000D
#define REDIRECTS 0x0C
#define DEGRADED 0x1            /* fabric health mask, bits 0 and 1: 1 is degraded bandwidth */
#define FROM_SM_SHARE 0.8       /* from this share of the highest SM clock on, the crossbar feeds all of the HBM */
#define PAGEABLE 0.35           /* through the driver's own staging buffer */
#define THROUGH_HOST 0.75
#define REDIRECTED 0.35

typedef struct {
    double until;
    double hbm, to_device, to_host, pcie;   /* B/s */
    double link_speed;                      /* B/s of one NVLink */
    int links, degraded, redirected, numa;
    char cluster[64];
    double far, launch, copy, noise, slow_cpu; /* us; noise is how many times more spikes than on a quiet node */
} Gpu;

static Gpu gpus[MOST_GPUS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t calls[MOST_GPUS];

/* ---- reading the state ------------------------------------------------------------------------------------------------ */

static int config_bytes(const char *address, const char *end, int at, void *bytes, size_t count)
{
    int fd = node_open(O_RDONLY, "root/sys/bus/pci/devices/%s/%s", address, end);
    int fine = fd >= 0 && pread(fd, bytes, count, at) == (ssize_t)count;
    if (fd >= 0)
        close(fd);
    return fine;
}

static double payload_of(const char *address, const char *end)
{
    uint16_t control;
    return config_bytes(address, end, 0x68, &control, sizeof control) ? 128 << (control >> 5 & 7) : 256;
}

static int redirects(const char *address)
{
    uint16_t words[4];
    return config_bytes(address, "../config", ACS_AT, words, sizeof words) && words[0] == ACS_ID && words[3] & REDIRECTS;
}

/* Returns B/s of the link of a GPU, by the lesser of its two ends. */
static double pcie_of(const char *address)
{
    const char *const ends[] = {"", "../"};
    double rate = INFINITY, width = INFINITY, payload = INFINITY, bits;
    for (int end = 0; end < 2; end++) {
        char config[32];
        snprintf(config, sizeof config, "%sconfig", ends[end]);
        rate = fmin(rate, node_number(32, "root/sys/bus/pci/devices/%s/%scurrent_link_speed", address, ends[end]));
        width = fmin(width, node_number(16, "root/sys/bus/pci/devices/%s/%scurrent_link_width", address, ends[end]));
        payload = fmin(payload, payload_of(address, config));
    }
    bits = rate * 1e9 * width * (rate < 6 ? 0.8 : rate < 40 ? 128.0 / 130 : 242.0 / 256);
    return bits / 8 * payload / (payload + HEADER);
}

static int count_of(const char *list, int wanted)
{
    int count = 0;
    for (char *at = (char *)list, *end; *at; at = end) {
        long value = strtol(at, &end, 10);
        if (end == at)
            break;
        count += value == wanted;
    }
    return count;
}

static double hbm_of(int gpu)
{
    char text[TEXT];
    double clock = node_number(0, "nvml/gpu%d/clock_max_memory", gpu), width = node_number(0, "nvml/gpu%d/memory_bus_width", gpu);
    double limit = node_number(0, "nvml/gpu%d/power_limit", gpu), share;
    Load load = {
        node_number(1, "nvml/gpu%d/clock_max_sm", gpu), {0, 0}, 0, node_number(limit, "nvml/gpu%d/power_enforced", gpu),
        node_number(0, "nvml/gpu%d/power_default", gpu)
    };
    if (node_text(text, "nvml/gpu%d/locked_memory_clocks", gpu) && strchr(text, ' '))
        clock = fmin(clock, strtod(strchr(text, ' '), NULL));
    if (node_text(text, "nvml/gpu%d/locked_sm_clocks", gpu) && strchr(text, ' '))
        load.lock[1] = strtod(strchr(text, ' '), NULL);
    if (node_text(text, "nvml/gpu%d/event_reasons", gpu))
        load.reasons = (unsigned)strtoul(text, NULL, 16);
    share = load_clock(&load) / load.most;
    return 2 * clock * 1e6 * width / 8 * node_row(LOAD, "hbm", 0.85) * fmin(1, share / FROM_SM_SHARE);
}

static void read_links(Gpu *gpu, int index)
{
    char text[TEXT];
    gpu->links = node_text(text, "nvml/gpu%d/nvlink_states", index) ? count_of(text, 1) : 0;
    gpu->link_speed = node_number(0, "nvml/gpu%d/nvlink_speed", index) * 1e6;
    gpu->degraded = node_text(text, "nvml/gpu%d/fabric_health", index) && (strtoul(text, NULL, 16) & 3) == DEGRADED;
    if (node_text(text, "nvml/gpu%d/fabric_cluster", index))
        snprintf(gpu->cluster, sizeof gpu->cluster, "%.63s", text);
}

/* A thread that runs and runs takes the CPU from others; the lab's daemons all sleep. */
static int runaways(void)
{
    int found = 0, fd = node_open(O_RDONLY | O_DIRECTORY, "root/proc");
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        char text[TEXT], *end;
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9' || !node_text(text, "root/proc/%.20s/stat", entry->d_name))
            continue;
        end = strrchr(text, ')');
        found += end && end[1] && end[2] == 'R';
    }
    if (folder)
        closedir(folder);
    return found;
}

static void read_host(Gpu *gpu)
{
    char text[TEXT];
    gpu->far = node_row(LOAD, "far", 0.7);
    gpu->launch = node_row(LOAD, "launch", 2.5);
    gpu->copy = node_row(LOAD, "copy", 2.0);
    gpu->slow_cpu = 1;
    if (node_text(text, "root/sys/devices/system/cpu/cpufreq/policy0/scaling_governor") && strcmp(text, "performance"))
        gpu->slow_cpu = 1.6;
    gpu->noise = 1 + 9 * runaways() + (node_number(0, "root/proc/sys/kernel/numa_balancing") > 0 ? 7 : 0);
}

static void refresh(Gpu *gpu, int index)
{
    struct timespec now;
    double seconds, c2c;
    char address[TEXT], text[TEXT];
    clock_gettime(CLOCK_MONOTONIC, &now);
    seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    if (seconds < gpu->until || !node_address(index, address))
        return;
    gpu->until = seconds + FRESH_SECONDS;
    gpu->hbm = hbm_of(index);
    gpu->pcie = pcie_of(address);
    gpu->to_device = gpu->pcie * node_row(LOAD, "h2d", 0.96);
    gpu->to_host = gpu->pcie * node_row(LOAD, "d2h", 0.955);
    if (node_number(0, "nvml/gpu%d/c2c_mode", index) > 0 && node_text(text, "nvml/gpu%d/c2c_states", index)) {
        c2c = count_of(text, 1) * node_number(0, "nvml/gpu%d/c2c_speed", index) * 1e6;
        gpu->to_device = c2c * node_row(LOAD, "c2c_h2d", 0.9);
        gpu->to_host = c2c * node_row(LOAD, "c2c_d2h", 0.86);
    }
    gpu->redirected = redirects(address);
    gpu->numa = (int)node_number(-1, "root/sys/bus/pci/devices/%s/../numa_node", address);
    read_links(gpu, index);
    read_host(gpu);
}

/* ---- noise: the same for the same node, GPU and number of the call ------------------------------------------------------ */

static double chance(uint64_t seed)
{
    seed += 0x9E3779B97F4A7C15u;
    seed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9u;
    seed = (seed ^ seed >> 27) * 0x94D049BB133111EBu;
    return (double)((seed ^ seed >> 31) >> 11) / (double)(1ull << 53);
}

static uint64_t seed_of(enum path path, int gpu)
{
    static uint64_t name;
    char text[TEXT];
    if (!name && node_text(text, "root/etc/hostname"))
        for (const char *at = text; *at; at++)
            name = (name ^ (unsigned char)*at) * 0x100000001B3u + 1;
    return name ^ (uint64_t)(gpu + 1) << 48 ^ (uint64_t)(path + 1) << 40;
}

/* Up to 1 % for what the GPU is, and up to 1 % for this call. */
static double varied(double value, enum path path, int gpu, uint64_t call)
{
    uint64_t seed = seed_of(path, gpu);
    return value * (1 + 0.02 * (chance(seed) - 0.5) + 0.02 * (chance(seed ^ call * 0x9E3779B97F4A7C15u) - 0.5));
}

/* us: most calls near the middle, some later, few much later: a machine check, a timer, another thread. */
static double jittered(const Gpu *gpu, double middle, int index, uint64_t call)
{
    uint64_t seed = seed_of(LAUNCH, index) ^ call * 0xD1B54A32D192ED03u;
    double one = chance(seed), other = chance(seed + 1), us = varied(middle * gpu->slow_cpu, LAUNCH, index, call);
    if (one < 0.0003 * gpu->noise)
        us += (4 + 8 * other) * sqrt(gpu->noise);
    else if (one < 0.0003 * gpu->noise + 0.008)
        us *= 1.15 + 0.5 * other;
    return us;
}

/* ---- what the library asks for ------------------------------------------------------------------------------------------ */

static double between(const Gpu *one, const Gpu *other)
{
    int links = one->links < other->links ? one->links : other->links;
    double speed;
    if (links && !strcmp(one->cluster, other->cluster)) {
        speed = links * fmin(one->link_speed, other->link_speed) * node_row(LOAD, "nvlink", 0.83);
        return one->degraded || other->degraded ? speed / 2 : speed;
    }
    speed = fmin(one->pcie, other->pcie) * THROUGH_HOST;
    return one->redirected || other->redirected ? speed * REDIRECTED : speed;
}

/*
 * Returns the time that an operation of a GPU takes.
 *
 * other is the peer of TO_PEER. INSIDE counts each byte twice, as it is read and written. numa is the node that the host's
 * buffer lies on, -1 where nobody has said; what nobody has bound is near.
 */
double seconds_for(enum path path, int index, int other, size_t bytes, int numa, int pinned)
{
    double rate, us;
    uint64_t call;
    Gpu gpu, peer = {0};
    pthread_mutex_lock(&lock);
    refresh(&gpus[index], index);
    gpu = gpus[index];
    if (path == TO_PEER) {
        refresh(&gpus[other], other);
        peer = gpus[other];
    }
    call = ++calls[index];
    pthread_mutex_unlock(&lock);
    if (path == LAUNCH)
        return 1e-6 * jittered(&gpu, gpu.launch, index, call);
    us = jittered(&gpu, gpu.copy, index, call);
    rate = path == INSIDE ? gpu.hbm / 2 : path == TO_PEER ? between(&gpu, &peer) : path == TO_DEVICE ? gpu.to_device : gpu.to_host;
    if (path == TO_DEVICE || path == TO_HOST)
        rate *= (numa >= 0 && gpu.numa >= 0 && numa != gpu.numa ? gpu.far : 1) * (pinned ? 1 : PAGEABLE);
    return fmax(1e-6 * us, (double)bytes / varied(rate > 1 ? rate : 1, path, index, call)); /* the next one starts meanwhile */
}

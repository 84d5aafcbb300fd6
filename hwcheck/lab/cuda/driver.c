/*
 * The lab's libcuda.so.1: devices and contexts. memory.c has memory and copies, stream.c streams, events and kernels.
 *
 * Exactly the functions that hwcheck's load tier calls. Time is virtual: a stream's clock is moved on by what figures.c says
 * that an operation takes, and nothing sleeps. Sources of calls and codes: cuda.h, CUDA driver API reference.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver.h"

enum { COMPLETED = 3, PROHIBITED = 2 };

pthread_mutex_t big_lock = PTHREAD_MUTEX_INITIALIZER;
__thread Context *current;
int initialized;
static int devices[MOST_GPUS], device_count;
static Context *contexts;

static void hang(void)
{
    for (;;)
        pause();
}

/* Counts what CUDA can open: a GPU that is lost, or cut into MIG instances that nobody made, is none. */
Result find_devices(void)
{
    char text[TEXT];
    int fabric = 1;
    node_find();
    if (node_has("nvml/hang") || node_has("nvml/hang_hard"))
        hang();
    if (node_text(text, "nvml/faults/nvmlInit_v2"))
        return strstr(text, "MISMATCH") ? SYSTEM_DRIVER_MISMATCH : NO_DEVICE;
    device_count = 0;
    for (int gpu = 0; gpu < MOST_GPUS && node_has("nvml/gpu%d", gpu); gpu++) {
        if (node_has("nvml/gpu%d/lost", gpu) || node_number(0, "nvml/gpu%d/mig_mode", gpu) > 0)
            continue;
        fabric &= (int)node_number(COMPLETED, "nvml/gpu%d/fabric_state", gpu) == COMPLETED;
        devices[device_count++] = gpu;
    }
    if (!device_count)
        return NO_DEVICE;
    return fabric ? OK : SYSTEM_NOT_READY;
}

int gpu_of(int device) { return device >= 0 && device < device_count ? devices[device] : -1; }

EXPORT Result cuInit(unsigned flags)
{
    Result result = flags ? INVALID_VALUE : find_devices();
    initialized |= result == OK;
    return result;
}

EXPORT Result cuDriverGetVersion(int *version)
{
    node_find();
    *version = (int)node_number(0, "nvml/cuda_version");
    return OK;
}

EXPORT Result cuDeviceGetCount(int *count)
{
    *count = device_count;
    return initialized ? OK : NOT_INITIALIZED;
}

EXPORT Result cuDeviceGet(int *device, int ordinal)
{
    if (!initialized)
        return NOT_INITIALIZED;
    *device = ordinal;
    return gpu_of(ordinal) < 0 ? INVALID_DEVICE : OK;
}

EXPORT Result cuDeviceGetPCIBusId(char *text, int length, int device)
{
    char address[TEXT];
    if (gpu_of(device) < 0)
        return INVALID_DEVICE;
    if (!node_address(gpu_of(device), address) || (int)strlen(address) >= length)
        return INVALID_VALUE;
    strcpy(text, address);
    return OK;
}

EXPORT Result cuDeviceGetAttribute(int *value, int attribute, int device)
{
    int gpu = gpu_of(device), hopper;
    unsigned domain = 0, bus = 0, slot = 0;
    char address[TEXT] = "";
    if (gpu < 0)
        return INVALID_DEVICE;
    hopper = node_number(9, "nvml/gpu%d/architecture", gpu) < 10;
    if (node_address(gpu, address) && sscanf(address, "%x:%x:%x", &domain, &bus, &slot) != 3)
        return INVALID_VALUE;
    switch (attribute) {
    case 1: *value = 1024; break; /* MAX_THREADS_PER_BLOCK */
    case 10: *value = 32; break; /* WARP_SIZE */
    case 13: *value = 1000 * (int)node_number(0, "nvml/gpu%d/clock_max_sm", gpu); break; /* CLOCK_RATE, kHz */
    case 16: *value = hopper ? 132 : 148; break; /* MULTIPROCESSOR_COUNT */
    case 20: *value = (int)node_number(0, "nvml/gpu%d/compute_mode", gpu); break; /* COMPUTE_MODE */
    case 32: *value = (int)node_number(0, "nvml/gpu%d/ecc_mode", gpu); break; /* ECC_ENABLED */
    case 33: *value = (int)bus; break; /* PCI_BUS_ID */
    case 34: *value = (int)slot; break; /* PCI_DEVICE_ID */
    case 36: *value = 1000 * (int)node_number(0, "nvml/gpu%d/clock_max_memory", gpu); break; /* MEMORY_CLOCK_RATE, kHz */
    case 37: *value = (int)node_number(0, "nvml/gpu%d/memory_bus_width", gpu); break; /* GLOBAL_MEMORY_BUS_WIDTH */
    case 40: *value = 3; break; /* ASYNC_ENGINE_COUNT */
    case 41: *value = 1; break; /* UNIFIED_ADDRESSING */
    case 50: *value = (int)domain; break; /* PCI_DOMAIN_ID */
    case 75: *value = hopper ? 9 : 10; break; /* COMPUTE_CAPABILITY_MAJOR */
    case 76: *value = 0; break; /* COMPUTE_CAPABILITY_MINOR */
    default: return INVALID_VALUE;
    }
    return OK;
}

EXPORT Result cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    if (gpu_of(device) < 0 || gpu_of(peer) < 0)
        return INVALID_DEVICE;
    *can = device != peer;
    return OK;
}

/* Lets NVML see the context: a file of this process, locked while it is open, and let go by the kernel when it dies. */
static int mark_busy(int gpu)
{
    char path[TEXT];
    int folder = node_open(O_RDONLY | O_DIRECTORY, "nvml/gpu%d", gpu), fd;
    if (folder < 0)
        return -1;
    mkdirat(folder, "contexts", 0777);
    snprintf(path, sizeof path, "contexts/%d", (int)getpid());
    fd = openat(folder, path, O_CREAT | O_RDONLY | O_CLOEXEC, 0644);
    close(folder);
    if (fd >= 0)
        flock(fd, LOCK_SH);
    return fd;
}

EXPORT Result cuCtxCreate_v2(Context **out, unsigned flags, int device)
{
    Context *made;
    int gpu = gpu_of(device);
    (void)flags;
    if (!initialized)
        return NOT_INITIALIZED;
    if (gpu < 0)
        return INVALID_DEVICE;
    if (node_has("nvml/gpu%d/hang", gpu) || node_has("nvml/gpu%d/hang_hard", gpu))
        hang();
    if (node_has("nvml/gpu%d/needs_reset", gpu) || (int)node_number(0, "nvml/gpu%d/compute_mode", gpu) == PROHIBITED)
        return UNKNOWN;
    made = calloc(1, sizeof *made);
    if (!made)
        return OUT_OF_MEMORY;
    retrain(gpu);
    made->gpu = gpu;
    made->lock = mark_busy(gpu);
    made->stream.context = made;
    made->below = current;
    pthread_mutex_lock(&big_lock);
    made->next = contexts;
    contexts = made;
    pthread_mutex_unlock(&big_lock);
    *out = current = made;
    return OK;
}

static int is_known(const Context *context, int gpu)
{
    for (const Context *one = contexts; one; one = one->next)
        if (one == context || one->gpu == gpu)
            return 1;
    return 0;
}

EXPORT Result cuCtxDestroy_v2(Context *context)
{
    char path[32];
    int folder, gpu;
    pthread_mutex_lock(&big_lock);
    if (!context || !is_known(context, -1)) {
        pthread_mutex_unlock(&big_lock);
        return INVALID_CONTEXT;
    }
    for (Context **at = &contexts; *at; at = &(*at)->next)
        if (*at == context) {
            *at = context->next;
            break;
        }
    gpu = context->gpu;
    folder = is_known(NULL, gpu) ? -1 : node_open(O_RDONLY | O_DIRECTORY, "nvml/gpu%d/contexts", gpu);
    snprintf(path, sizeof path, "%d", (int)getpid());
    if (folder >= 0) {
        unlinkat(folder, path, 0);
        close(folder);
        forget_memory(gpu);
    }
    if (context->lock >= 0)
        close(context->lock);
    if (current == context)
        current = context->below && is_known(context->below, -1) ? context->below : NULL;
    free(context);
    pthread_mutex_unlock(&big_lock);
    return OK;
}

EXPORT Result cuCtxSetCurrent(Context *context)
{
    int known;
    pthread_mutex_lock(&big_lock);
    known = !context || is_known(context, -1);
    pthread_mutex_unlock(&big_lock);
    if (!known)
        return INVALID_CONTEXT;
    current = context;
    return OK;
}

EXPORT Result cuCtxEnablePeerAccess(Context *peer, unsigned flags)
{
    NEED_CONTEXT();
    if (flags || !peer || peer->gpu == current->gpu)
        return flags ? INVALID_VALUE : INVALID_CONTEXT;
    if (current->peers & 1ull << peer->gpu)
        return PEER_ACCESS_ALREADY_ENABLED;
    current->peers |= 1ull << peer->gpu;
    return OK;
}

EXPORT Result cuGetErrorName(int code, const char **name)
{
    static const struct { int code; const char *name; } NAMES[] = {
        {OK, "CUDA_SUCCESS"}, {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"}, {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"}, {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
        {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"}, {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
        {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"}, {PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
        {INVALID_PTX, "CUDA_ERROR_INVALID_PTX"}, {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
        {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"}, {NOT_READY, "CUDA_ERROR_NOT_READY"},
        {PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
        {SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY"},
        {SYSTEM_DRIVER_MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}, {UNKNOWN, "CUDA_ERROR_UNKNOWN"}
    };
    for (unsigned at = 0; at < sizeof NAMES / sizeof *NAMES; at++)
        if (NAMES[at].code == code) {
            *name = NAMES[at].name;
            return OK;
        }
    *name = NULL;
    return INVALID_VALUE;
}

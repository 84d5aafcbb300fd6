/*
 * Memory and copies. Memory is real, but only what is touched is there; of a copy of more than
 * 2 MiB only both ends are, 64 KiB each: thousands of copies of a GiB then cost nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

#include "driver.h"

#define MOST_MEMORY 4096
#define WHOLE ((size_t)2 << 20)
#define END ((size_t)64 << 10)

static Memory memory[MOST_MEMORY];

/* Finds the memory that has an address; size bytes from there must be of it. */
Memory *memory_at(const void *address, size_t size)
{
    for (int at = 0; at < MOST_MEMORY; at++) {
        char *base = memory[at].base;
        if (base && base <= (const char *)address && (const char *)address < base + memory[at].size)
            return (const char *)address + size <= base + memory[at].size ? &memory[at] : NULL;
    }
    return NULL;
}

/* Copies, or fills where there is nothing to copy from. */
void touch_ends(void *to, const void *from, size_t size, unsigned char value)
{
    size_t end = size <= WHOLE ? size : END, last = size <= WHOLE ? 0 : size - END;
    for (int half = 0; half < (last ? 2 : 1); half++) {
        size_t at = half ? last : 0;
        if (from)
            memmove((char *)to + at, (const char *)from + at, end);
        else
            memset((char *)to + at, value, end);
    }
}

/* Returns the NUMA node that the calling thread is bound to; -1 where it is free, or where nobody keeps a note of it. */
int bound_to(void)
{
    static int (*ask)(void);
    if (!ask)
        *(void **)&ask = dlsym(RTLD_DEFAULT, "hwcheck_lab_numa");
    return ask ? ask() : -1;
}

static double used_on(int gpu)
{
    double used = 0;
    for (int at = 0; at < MOST_MEMORY; at++)
        used += memory[at].base && memory[at].gpu == gpu ? (double)memory[at].size : 0;
    return used;
}

static Result take(char **out, size_t size, int gpu)
{
    Result result = OUT_OF_MEMORY;
    double room = gpu < 0 ? 1e18 : node_number(0, "nvml/gpu%d/memory_total", gpu)
        - node_number(0, "nvml/gpu%d/memory_reserved", gpu) - node_number(0, "nvml/gpu%d/memory_used", gpu);
    char *base;
    if (!size)
        return INVALID_VALUE;
    pthread_mutex_lock(&big_lock);
    base = gpu >= 0 && used_on(gpu) + (double)size > room ? MAP_FAILED
        : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (int at = 0; base != MAP_FAILED && at < MOST_MEMORY; at++)
        if (!memory[at].base) {
            memory[at] = (Memory){base, size, gpu, gpu < 0 ? bound_to() : -1};
            *out = base;
            result = OK;
            break;
        }
    pthread_mutex_unlock(&big_lock);
    return result;
}

static Result give_back(void *base, int is_host)
{
    Result result = INVALID_VALUE;
    pthread_mutex_lock(&big_lock);
    for (int at = 0; base && at < MOST_MEMORY; at++)
        if (memory[at].base == base && (memory[at].gpu < 0) == is_host) {
            munmap(base, memory[at].size);
            memory[at].base = NULL;
            result = OK;
        }
    pthread_mutex_unlock(&big_lock);
    return result;
}

/* Takes what a GPU has, with its last context; the caller has the lock. */
void forget_memory(int gpu)
{
    for (int at = 0; at < MOST_MEMORY; at++)
        if (memory[at].base && memory[at].gpu == gpu) {
            munmap(memory[at].base, memory[at].size);
            memory[at].base = NULL;
        }
}

EXPORT Result cuMemAlloc_v2(Pointer *out, size_t size)
{
    char *base = NULL;
    NEED_CONTEXT();
    TRY(take(&base, size, current->gpu));
    *out = (Pointer)(uintptr_t)base;
    return OK;
}

EXPORT Result cuMemFree_v2(Pointer pointer) { NEED_CONTEXT(); return give_back((void *)(uintptr_t)pointer, 0); }

EXPORT Result cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
    char *base = NULL;
    (void)flags;
    NEED_CONTEXT();
    TRY(take(&base, size, -1));
    *out = base;
    return OK;
}

EXPORT Result cuMemFreeHost(void *pointer) { NEED_CONTEXT(); return give_back(pointer, 1); }

/* Does a copy, and moves the stream's clock on. What is of no GPU is of the host, pinned or not. */
static Result copy(Stream *stream, void *to, const void *from, size_t size, int to_gpu, int from_gpu)
{
    Memory *target, *source, *host;
    enum path path;
    int gpu, other = 0;
    stream = stream_of(stream);
    pthread_mutex_lock(&big_lock);
    target = memory_at(to, size), source = memory_at(from, size);
    pthread_mutex_unlock(&big_lock);
    if (!stream || (to_gpu && (!target || target->gpu < 0)) || (from_gpu && (!source || source->gpu < 0)))
        return stream ? INVALID_VALUE : INVALID_HANDLE;
    host = to_gpu ? source : target;
    if (to_gpu && from_gpu) {
        gpu = source->gpu, other = target->gpu;
        path = gpu == other ? INSIDE : TO_PEER;
    } else {
        gpu = to_gpu ? target->gpu : source->gpu;
        path = to_gpu ? TO_DEVICE : TO_HOST;
    }
    touch_ends(to, from, size, 0);
    stream->clock += seconds_for(path, gpu, other, size, host ? host->numa : bound_to(), host != NULL);
    return OK;
}

#define AT(pointer) ((void *)(uintptr_t)(pointer))

EXPORT Result cuMemcpyHtoD_v2(Pointer to, const void *from, size_t size) { NEED_CONTEXT(); return copy(NULL, AT(to), from, size, 1, 0); }
EXPORT Result cuMemcpyDtoH_v2(void *to, Pointer from, size_t size) { NEED_CONTEXT(); return copy(NULL, to, AT(from), size, 0, 1); }

EXPORT Result cuMemcpyHtoDAsync_v2(Pointer to, const void *from, size_t size, Stream *stream)
{
    NEED_CONTEXT();
    return copy(stream, AT(to), from, size, 1, 0);
}

EXPORT Result cuMemcpyDtoHAsync_v2(void *to, Pointer from, size_t size, Stream *stream)
{
    NEED_CONTEXT();
    return copy(stream, to, AT(from), size, 0, 1);
}

EXPORT Result cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t size, Stream *stream)
{
    NEED_CONTEXT();
    return copy(stream, AT(to), AT(from), size, 1, 1);
}

EXPORT Result cuMemcpyPeerAsync(Pointer to, Context *to_context, Pointer from, Context *from_context, size_t size, Stream *stream)
{
    NEED_CONTEXT();
    if (!to_context || !from_context)
        return INVALID_CONTEXT;
    return copy(stream, AT(to), AT(from), size, 1, 1);
}

EXPORT Result cuMemsetD8Async(Pointer to, unsigned char value, size_t size, Stream *stream)
{
    Memory *target;
    NEED_CONTEXT();
    stream = stream_of(stream);
    pthread_mutex_lock(&big_lock);
    target = memory_at(AT(to), size);
    pthread_mutex_unlock(&big_lock);
    if (!stream || !target || target->gpu < 0)
        return stream ? INVALID_VALUE : INVALID_HANDLE;
    touch_ends(AT(to), NULL, size, value);
    stream->clock += seconds_for(INSIDE, target->gpu, 0, size / 2, -1, 1);
    return OK;
}

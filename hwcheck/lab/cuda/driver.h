/* What the parts of the lab's CUDA library share: contexts, streams, events, memory. */
#ifndef HWCHECK_LAB_DRIVER_H
#define HWCHECK_LAB_DRIVER_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "node.h"

#define EXPORT __attribute__((visibility("default")))

typedef int Result;
typedef uint64_t Pointer;

enum {
    OK, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, NO_DEVICE = 100, INVALID_DEVICE, INVALID_IMAGE = 200,
    INVALID_CONTEXT, PEER_ACCESS_UNSUPPORTED = 217, INVALID_PTX, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600,
    PEER_ACCESS_ALREADY_ENABLED = 704, SYSTEM_NOT_READY = 802, SYSTEM_DRIVER_MISMATCH, UNKNOWN = 999
};

typedef struct Stream {
    struct Context *context;
    double clock; /* s of virtual time: when what was put in last will be done */
    struct Stream *next;
} Stream;

typedef struct Event {
    struct Context *context;
    Stream *stream;
    double time;
    int recorded, unready; /* unready: so many queries more answer NOT_READY; a sampler gets its turn between them */
    struct Event *next;
} Event;

typedef struct Context {
    int gpu, lock;
    Stream stream;
    Event *events;
    uint64_t peers; /* bit for each GPU whose memory it may reach */
    struct Context *below, *next;
} Context;

typedef struct {
    char *base;
    size_t size;
    int gpu;  /* -1 for memory of the host */
    int numa; /* of memory of the host; -1 where nobody bound it */
} Memory;

extern pthread_mutex_t big_lock;
extern __thread Context *current;
extern int initialized;

Result find_devices(void);
int gpu_of(int device);
Stream *stream_of(Stream *stream);
Memory *memory_at(const void *address, size_t size);
void touch_ends(void *to, const void *from, size_t size, unsigned char value);
int bound_to(void);
void forget_memory(int gpu);

#define NEED_CONTEXT() do { if (!initialized) return NOT_INITIALIZED; if (!current) return INVALID_CONTEXT; } while (0)
#define TRY(what) do { Result tried = (what); if (tried) return tried; } while (0)
#endif

/* Streams, events and kernels: their clock is virtual. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define QUERIES 2
#define LEGACY ((Stream *)1)
#define PER_THREAD ((Stream *)2)
#define MOST_THREADS 1024
#define SANITY "square_plus_index"

typedef struct { char *image; } Module;
typedef struct { char name[128]; } Function;

/* ---- streams ---------------------------------------------------------------------------------------------------------- */

Stream *stream_of(Stream *stream)
{
    return stream && stream != LEGACY && stream != PER_THREAD ? stream : current ? &current->stream : NULL;
}

EXPORT Result cuStreamCreate(Stream **out, unsigned flags)
{
    Stream *made;
    NEED_CONTEXT();
    if (flags > 1)
        return INVALID_VALUE;
    made = calloc(1, sizeof *made);
    if (!made)
        return OUT_OF_MEMORY;
    made->context = current;
    made->clock = current->stream.clock;
    *out = made;
    return OK;
}

static void settle(Context *context, const Stream *stream)
{
    pthread_mutex_lock(&big_lock);
    for (Event *event = context->events; event; event = event->next)
        if (!stream || event->stream == stream)
            event->unready = 0;
    pthread_mutex_unlock(&big_lock);
}

EXPORT Result cuStreamSynchronize(Stream *stream)
{
    NEED_CONTEXT();
    settle(current, stream_of(stream));
    return OK;
}

EXPORT Result cuStreamDestroy_v2(Stream *stream)
{
    NEED_CONTEXT();
    if (stream_of(stream) != stream)
        return INVALID_HANDLE;
    settle(stream->context, stream);
    free(stream);
    return OK;
}

EXPORT Result cuCtxSynchronize(void)
{
    NEED_CONTEXT();
    settle(current, NULL);
    return OK;
}

/* ---- events ----------------------------------------------------------------------------------------------------------- */

EXPORT Result cuEventCreate(Event **out, unsigned flags)
{
    Event *made;
    (void)flags;
    NEED_CONTEXT();
    made = calloc(1, sizeof *made);
    if (!made)
        return OUT_OF_MEMORY;
    made->context = current;
    pthread_mutex_lock(&big_lock);
    made->next = current->events;
    current->events = made;
    pthread_mutex_unlock(&big_lock);
    *out = made;
    return OK;
}

EXPORT Result cuEventDestroy_v2(Event *event)
{
    NEED_CONTEXT();
    if (!event)
        return INVALID_HANDLE;
    pthread_mutex_lock(&big_lock);
    for (Event **at = &event->context->events; *at; at = &(*at)->next)
        if (*at == event) {
            *at = event->next;
            break;
        }
    pthread_mutex_unlock(&big_lock);
    free(event);
    return OK;
}

EXPORT Result cuEventRecord(Event *event, Stream *stream)
{
    NEED_CONTEXT();
    if (!event || !(stream = stream_of(stream)) || event->context != stream->context)
        return INVALID_HANDLE;
    event->stream = stream;
    event->time = stream->clock;
    event->recorded = 1;
    event->unready = QUERIES;
    return OK;
}

EXPORT Result cuEventQuery(Event *event)
{
    NEED_CONTEXT();
    if (!event)
        return INVALID_HANDLE;
    return event->unready && event->unready-- ? NOT_READY : OK;
}

EXPORT Result cuEventSynchronize(Event *event)
{
    NEED_CONTEXT();
    if (!event)
        return INVALID_HANDLE;
    pthread_mutex_lock(&big_lock);
    for (Event *other = event->context->events; other; other = other->next)
        if (other->stream == event->stream && other->time <= event->time)
            other->unready = 0; /* what stood before it in the stream is done too */
    pthread_mutex_unlock(&big_lock);
    return OK;
}

EXPORT Result cuEventElapsedTime(float *milliseconds, Event *start, Event *end)
{
    NEED_CONTEXT();
    if (!start || !end || !start->recorded || !end->recorded || start->context != end->context)
        return INVALID_HANDLE;
    if (end->unready)
        return NOT_READY;
    *milliseconds = (float)(1e3 * (end->time - start->time));
    return OK;
}

/* ---- kernels ---------------------------------------------------------------------------------------------------------- */

EXPORT Result cuModuleLoadData(Module **out, const void *image)
{
    Module *made;
    NEED_CONTEXT();
    if (!image || !strstr(image, ".entry"))
        return image && strstr(image, ".version") ? INVALID_PTX : INVALID_IMAGE;
    made = calloc(1, sizeof *made);
    if (!made || !(made->image = strdup(image))) {
        free(made);
        return OUT_OF_MEMORY;
    }
    *out = made;
    return OK;
}

EXPORT Result cuModuleUnload(Module *module)
{
    NEED_CONTEXT();
    if (!module)
        return INVALID_HANDLE;
    free(module->image);
    free(module);
    return OK;
}

/* Functions of a module live as long as the process: who has one may keep it. */
EXPORT Result cuModuleGetFunction(Function **out, Module *module, const char *name)
{
    Function *made;
    size_t length = strlen(name);
    NEED_CONTEXT();
    for (const char *at = module->image; (at = strstr(at, ".entry")); at++) {
        const char *found = at + 6 + strspn(at + 6, " \t\n");
        if (!strncmp(found, name, length) && !strncmp(found + length + strspn(found + length, " \t\n"), "(", 1)) {
            made = calloc(1, sizeof *made);
            if (!made || length >= sizeof made->name) {
                free(made);
                return OUT_OF_MEMORY;
            }
            strcpy(made->name, name);
            *out = made;
            return OK;
        }
    }
    return NOT_FOUND;
}

/* Computes what the kernel of hwcheck's first program on a GPU does: the square of each number and its index. */
static Result compute(void **parameters, uint64_t threads)
{
    Pointer data = *(Pointer *)parameters[0];
    uint32_t count = *(uint32_t *)parameters[1], *numbers = (uint32_t *)(uintptr_t)data;
    Memory *memory;
    pthread_mutex_lock(&big_lock);
    memory = memory_at(numbers, 4 * (size_t)count);
    pthread_mutex_unlock(&big_lock);
    if (!memory || memory->gpu != current->gpu)
        return INVALID_VALUE;
    for (uint32_t at = 0; at < count && at < threads; at++)
        numbers[at] = numbers[at] * numbers[at] + at;
    return OK;
}

EXPORT Result cuLaunchKernel(
    Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
    Stream *stream, void **parameters, void **extra)
{
    uint64_t blocks = (uint64_t)gx * gy * gz, threads = (uint64_t)bx * by * bz;
    (void)shared;
    NEED_CONTEXT();
    if (!function || !(stream = stream_of(stream)))
        return INVALID_HANDLE;
    if (!blocks || !threads || threads > MOST_THREADS || (parameters && extra))
        return INVALID_VALUE;
    if (!strcmp(function->name, SANITY))
        TRY(parameters ? compute(parameters, blocks * threads) : INVALID_VALUE);
    stream->clock += seconds_for(LAUNCH, current->gpu, 0, 0, -1, 1);
    return OK;
}

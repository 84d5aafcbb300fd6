/* What the lab's CUDA library reads of its node: small files, and the figures that follow from them. */
#ifndef HWCHECK_LAB_NODE_H
#define HWCHECK_LAB_NODE_H
#include <stddef.h>

#define TEXT 4096
#define MOST_GPUS 64

/* ---- node.c: files below the node's folder: nvml/gpu0/uuid, live/load, root/sys/... ------------------------------- */

void node_find(void);
int node_has(const char *format, ...) __attribute__((format(printf, 1, 2)));
int node_text(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
double node_number(double otherwise, const char *format, ...) __attribute__((format(printf, 2, 3)));
double node_row(const char *file, const char *key, double otherwise);
void node_keep(const char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int node_open(int flags, const char *format, ...) __attribute__((format(printf, 2, 3)));
int has_number(const char *list, int number);
int node_address(int gpu, char *address);
int numa_of_cpus(void);

/* ---- figures.c: what the state of the node makes of a copy or a launch --------------------------------------------- */

enum path { TO_DEVICE, TO_HOST, INSIDE, TO_PEER, LAUNCH };

double seconds_for(enum path path, int gpu, int other, size_t bytes, int numa, int pinned);

/* ---- link.c: a weak link that trains down under load ---------------------------------------------------------------- */

void retrain(int gpu);
#endif

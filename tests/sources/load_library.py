"""A stand-in for libcuda.so.1 whose copies take the time that an environment variable says; for the load tier alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

CUDA = r"""
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>
typedef unsigned u;
typedef unsigned long long p;
static double now;  /* seconds of the GPU's time: what was enqueued so far */
static int open_contexts, open_memory, current;
static int want(const char *name) { const char *v = getenv("FAKE_CUDA"); return v && !strcmp(v, name); }
static double rate(const char *name, double usual) { const char *v = getenv(name); return v ? atof(v) : usual; }
u cuInit(u f) { return want("init") ? 802 : 0; }
u cuDeviceGetCount(int *c) { *c = 2; return 0; }
u cuDeviceGet(int *d, int i) { *d = i; return 0; }
u cuDeviceGetPCIBusId(char *t, int l, int d) { strcpy(t, d ? "0000:2A:00.0" : "0000:18:00.0"); return 0; }
u cuDeviceCanAccessPeer(int *able, int a, int b) { *able = !want("no-peers"); return 0; }
u cuCtxCreate_v2(void **c, u f, int d) {
    if (d && want("hang")) pause();
    if (d && want("ecc")) return 214;
    *c = (void *)(long)(d + 1); current = d; open_contexts++; return 0;
}
u cuCtxDestroy_v2(void *c) {
    const char *log = getenv("FAKE_CUDA_LOG");
    if (--open_contexts == 0 && log) {
        FILE *f = fopen(log, "a"); fprintf(f, "left %d\n", open_memory); fclose(f);
    }
    return 0;
}
u cuCtxSetCurrent(void *c) { current = (long)c - 1; return 0; }
u cuCtxEnablePeerAccess(void *c, u f) { return want("peer-refused") ? 217 : 0; }
u cuMemAlloc_v2(p *a, size_t s) {
    if (s > (128u << 20) && want("little-memory")) return 2;
    open_memory++; *a = 4096; return 0;
}
u cuMemFree_v2(p a) { open_memory--; return 0; }
u cuMemHostAlloc(void **a, size_t s, u f) { open_memory++; *a = (void *)4096; return 0; }
u cuMemFreeHost(void *a) { open_memory--; return 0; }
u cuMemsetD8Async(p a, unsigned char v, size_t n, void *s) { return 0; }
static u copy(size_t n, double gbs) {
    if (want("endless")) { char c[] = "0"; for (;;) usleep(1000); }
    now += n < 65536 ? 3e-6 : n / (gbs * 1e9); return 0;
}
u cuMemcpyDtoDAsync_v2(p a, p b, size_t n, void *s) { return copy(2 * n, rate("FAKE_HBM", 4000)); }
u cuMemcpyHtoDAsync_v2(p a, void *b, size_t n, void *s) { return copy(n, rate("FAKE_H2D", 55)); }
u cuMemcpyDtoHAsync_v2(void *a, p b, size_t n, void *s) { return copy(n, 54); }
u cuMemcpyPeerAsync(p a, void *x, p b, void *y, size_t n, void *s) { return copy(n, current ? 390 : 395); }
u cuStreamCreate(void **s, u f) { *s = (void *)1; return 0; }
u cuStreamDestroy_v2(void *s) { return 0; }
u cuStreamSynchronize(void *s) { return 0; }
u cuEventCreate(void **e, u f) { *e = calloc(1, sizeof(double)); return 0; }
u cuEventDestroy_v2(void *e) { free(e); return 0; }
u cuEventRecord(void *e, void *s) { *(double *)e = now; return 0; }
u cuEventQuery(void *e) { return 0; }
u cuEventSynchronize(void *e) { return 0; }
u cuEventElapsedTime(float *ms, void *a, void *b) {
    *ms = want("no-time") ? 0 : (*(double *)b - *(double *)a) * 1000; return 0;
}
u cuModuleLoadData(void **m, const char *t) { *m = (void *)1; return 0; }
u cuModuleUnload(void *m) { return 0; }
u cuModuleGetFunction(void **f, void *m, const char *name) { return strcmp(name, "nothing") ? 500 : 0; }
u cuLaunchKernel(void *f, u a, u b, u c, u d, u e, u g, u h, void *s, void **x, void **y) {
    static int n; now += ++n % 1000 ? 5e-6 : 9e-5; return 0;
}
u cuGetErrorName(u code, const char **t) {
    *t = code == 802 ? "CUDA_ERROR_SYSTEM_NOT_READY" : code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY"
       : code == 214 ? "CUDA_ERROR_ECC_UNCORRECTABLE" : "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED";
    return 0;
}
"""


def build(folder: Path) -> Path:
    """Compile the stand-in into a folder, for LD_LIBRARY_PATH."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (folder / "cuda.c").write_text(CUDA)
    subprocess.run([compiler, "-w", "-shared", "-fPIC", "-o", "libcuda.so.1", "cuda.c"], cwd=folder, check=True)
    return folder

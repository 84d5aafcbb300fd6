/*
 * What a GPU runs at while a context is open: the same for the lab's NVML and for its CUDA library.
 *
 * The memory clock is the highest that a lock allows. The SM clock too, unless hardware slows it (to a half) or the driver
 * for heat (to three quarters), or the limit of power is below what the load draws. The lab's load draws 60 % of the
 * default limit, as public captures of copies do, and a clock falls with the power that is left for it.
 */
#ifndef HWCHECK_LAB_LOAD_H
#define HWCHECK_LAB_LOAD_H

enum { REASON_IDLE = 0x1, REASON_POWER_CAP = 0x4, REASON_HW = 0x8, REASON_SW_THERMAL = 0x20 };

typedef struct {
    double most;             /* MHz */
    double lock[2];          /* MHz; 0 0 for none */
    unsigned reasons;        /* event reasons of the state */
    double enforced, normal; /* W or mW: the limit in force, and the limit at start */
} Load;

static inline double load_power(const Load *load) { return 0.6 * load->normal; }

static inline int load_is_capped(const Load *load)
{
    return load->enforced > 0 && load->enforced < load_power(load);
}

static inline double load_clock(const Load *load)
{
    double clock = load->most;
    if (load->lock[1] > 0 && clock > load->lock[1])
        clock = load->lock[1];
    if (load->reasons & REASON_HW && clock > load->most * 0.5)
        clock = load->most * 0.5;
    else if (load->reasons & REASON_SW_THERMAL && clock > load->most * 0.75)
        clock = load->most * 0.75;
    if (load_is_capped(load) && clock > load->most * load->enforced / load_power(load))
        clock = load->most * load->enforced / load_power(load);
    return clock;
}

static inline unsigned load_reasons(const Load *load)
{
    return (load->reasons & ~(unsigned)REASON_IDLE) | (load_is_capped(load) ? REASON_POWER_CAP : 0);
}
#endif

"""What NVML, ``nvidia-smi -q``, its XML and its CSV say of a GPU. The spellings stand in hwcheck.parse.gpu_table."""

from hwcheck.facts.registry import declare

declare(
    "node",
    """
    driver.version       | str | | NVIDIA driver version; NVML, nvidia-smi header
    driver.cuda_version  | str | | highest CUDA version the driver supports
    driver.nvml_version  | str | | version of the NVML library
    gpu.attached_count   | int | | GPUs that the driver says are attached
    gpu.listed_count     | int | | GPUs that this listing describes
    gpu.duplicates       | tuple | | PCI addresses that stand twice in one listing under different indices
    """,
)

declare(
    "gpu",
    """
    gpu.index               | int  | | nvidia-smi index
    gpu.minor               | int  | | device minor number: /dev/nvidiaN
    gpu.uuid                | str  | | GPU-xxxxxxxx-....
    gpu.serial              | str  | | board serial number; two GPUs of a GB200 board may share one
    gpu.name                | str  | | product name
    gpu.architecture        | str  | | Ampere, Hopper, Blackwell
    gpu.part_number         | str  | | board part number
    gpu.gpu_part_number     | str  | | GPU part number
    gpu.vbios               | str  | | VBIOS version
    gpu.inforom             | str  | | InfoROM image version
    gpu.gsp_firmware        | str  | | GSP firmware version; equals the driver's, or absent when GSP is off
    gpu.pci.device_id       | str  | | vendor:device as lspci prints it, 10de:2335
    gpu.pci.subsystem_id    | str  | | subsystem vendor:device, 10de:18be
    gpu.persistence_mode    | bool | | persistence mode is on
    gpu.addressing_mode     | str  | | None, HMM or ATS (Grace)
    gpu.virtualization_mode | str  | | None (bare metal), Pass-Through, VGPU, ...
    gpu.driver_model        | str  | | WDDM, TCC or MCDM: Windows only
    gpu.compute_mode        | str  | | Default, Exclusive_Process, Prohibited
    gpu.c2c.mode            | bool | | NVLink-C2C to the Grace CPU is enabled
    gpu.mig.mode            | bool | | MIG mode is on
    gpu.mig.pending         | bool | | MIG mode after the next reset
    gpu.recovery_action     | str  | | what the driver asks for: None, Reset, Reboot, Drain P2P, Drain and Reset ...
    gpu.reset_required      | bool | | the driver asks for a reset; replaced by recovery_action in R570
    gpu.drain_recommended   | bool | | the driver recommends drain and reset; replaced by recovery_action in R570
    gpu.access_error        | str  | | the driver's words where it could not read a value of the GPU: GPU requires reset
    gpu.performance_state   | str  | | P0 (highest) ... P15
    gpu.module_id           | int  | | position on the baseboard
    gpu.platform.chassis_serial | str | | NVL72: rack chassis
    gpu.platform.slot       | int  | | NVL72: slot in the chassis
    gpu.platform.tray       | int  | | NVL72: compute tray index
    gpu.platform.peer_type  | str  | | Direct Connected or Switch Connected
    gpu.processes           | tuple | | processes on the GPU: records of pid, type, name
    gpu.utilization         | int  | % | share of time a kernel was running

    gpu.memory.total        | int  | MiB | frame buffer
    gpu.memory.reserved     | int  | MiB | frame buffer kept by driver and firmware
    gpu.memory.used         | int  | MiB | frame buffer in use
    gpu.memory.free         | int  | MiB | frame buffer free
    gpu.bar1.total          | int  | MiB | BAR1 aperture; none on GH200

    gpu.ecc.mode            | bool | | ECC is on
    gpu.ecc.pending         | bool | | ECC mode after the next reset
    gpu.ecc.volatile.sram_corrected    | int | | SRAM errors corrected since driver load
    gpu.ecc.volatile.sram_uncorrected  | int | | SRAM errors not corrected since driver load (total)
    gpu.ecc.volatile.sram_parity       | int | | SRAM parity errors not corrected since driver load
    gpu.ecc.volatile.sram_secded       | int | | SRAM SEC-DED errors not corrected since driver load
    gpu.ecc.volatile.dram_corrected    | int | | HBM errors corrected since driver load
    gpu.ecc.volatile.dram_uncorrected  | int | | HBM errors not corrected since driver load
    gpu.ecc.volatile.uncorrected       | int | | all errors not corrected since driver load
    gpu.ecc.volatile.corrected         | int | | all errors corrected since driver load
    gpu.ecc.aggregate.sram_corrected   | int | | SRAM errors corrected in the life of the board
    gpu.ecc.aggregate.sram_uncorrected | int | | SRAM errors not corrected in the life of the board (total)
    gpu.ecc.aggregate.sram_parity      | int | | SRAM parity errors not corrected in the life of the board
    gpu.ecc.aggregate.sram_secded      | int | | SRAM SEC-DED errors not corrected in the life of the board
    gpu.ecc.aggregate.dram_corrected   | int | | HBM errors corrected in the life of the board
    gpu.ecc.aggregate.dram_uncorrected | int | | HBM errors not corrected in the life of the board
    gpu.ecc.aggregate.uncorrected      | int | | all errors not corrected in the life of the board
    gpu.ecc.aggregate.corrected        | int | | all errors corrected in the life of the board
    gpu.ecc.sram_threshold_exceeded    | bool | | uncorrected SRAM errors are over NVIDIA's limit
    gpu.repair.channel_pending         | bool | | an HBM channel repair waits for a reset
    gpu.repair.tpc_pending             | bool | | a TPC repair waits for a reset
    gpu.repair.unrepairable            | bool | | spare memory resources are used up
    gpu.retired.pending                | bool | | page retirement waits for a reset (before Ampere)

    gpu.remap.corrected     | int  | | rows remapped for corrected errors
    gpu.remap.uncorrected   | int  | | rows remapped for uncorrected errors
    gpu.remap.pending       | bool | | a row remap waits for a reset
    gpu.remap.failure       | bool | | a row could not be remapped
    gpu.remap.banks.max     | int  | | banks with all spare rows left
    gpu.remap.banks.high    | int  | | banks with most spare rows left
    gpu.remap.banks.partial | int  | | banks with some spare rows left
    gpu.remap.banks.low     | int  | | banks with one spare row left
    gpu.remap.banks.none    | int  | | banks without a spare row

    gpu.temperature         | int  | C | GPU temperature
    gpu.temperature.tlimit  | int  | C | distance to the slowdown limit: T.Limit
    gpu.temperature.memory  | int  | C | HBM temperature
    gpu.temperature.memory_max | int | C | highest operating temperature of the HBM, where the driver gives one (A100)

    gpu.power.draw          | float | W | average power draw
    gpu.power.limit         | float | W | power limit in force
    gpu.power.requested     | float | W | power limit asked for
    gpu.power.default       | float | W | power limit the board starts with
    gpu.power.min           | float | W | lowest settable power limit
    gpu.power.max           | float | W | highest settable power limit
    gpu.power_profile.requested | tuple | | workload power profiles asked for: MAX_Q, COMPUTE ... (Blackwell)
    gpu.power_profile.enforced  | tuple | | workload power profiles in force; conflicts are resolved by priority
    gpu.module_power.limit  | float | W | Grace module power limit in force
    gpu.module_power.default | float | W | Grace module power limit at start

    gpu.clocks.graphics     | int  | MHz | graphics clock now
    gpu.clocks.sm           | int  | MHz | SM clock now
    gpu.clocks.memory       | int  | MHz | memory clock now
    gpu.clocks.max_graphics | int  | MHz | highest graphics clock
    gpu.clocks.max_sm       | int  | MHz | highest SM clock
    gpu.clocks.max_memory   | int  | MHz | highest memory clock
    gpu.clocks.application_graphics | int | MHz | application graphics clock; deprecated from R590
    gpu.clocks.default_graphics     | int | MHz | default application graphics clock; deprecated from R590
    gpu.clocks.reason.idle          | bool | | clocks are low because nothing runs
    gpu.clocks.reason.applications  | bool | | clocks are held by an application or user clock setting
    gpu.clocks.reason.sw_power_cap  | bool | | the driver holds clocks to the power limit: normal at full load
    gpu.clocks.reason.hw_slowdown   | bool | | hardware slows clocks: thermal or power brake
    gpu.clocks.reason.hw_thermal    | bool | | hardware slows clocks: too hot
    gpu.clocks.reason.hw_power_brake | bool | | hardware slows clocks: the platform asserts the power brake
    gpu.clocks.reason.sync_boost    | bool | | clocks follow a sync boost group
    gpu.clocks.reason.sw_thermal    | bool | | the driver slows clocks: too hot
    gpu.clocks.counter.sw_power_cap | int  | us | time held by the power limit since driver load
    gpu.clocks.counter.sw_thermal   | int  | us | time slowed by the driver for heat since driver load
    gpu.clocks.counter.hw_thermal   | int  | us | time slowed by hardware for heat since driver load
    gpu.clocks.counter.hw_power_brake | int | us | time slowed by the power brake since driver load

    gpu.pcie.gen            | int  | | PCIe generation now
    gpu.pcie.gen_max        | int  | | highest PCIe generation of GPU and slot together
    gpu.pcie.gen_device_max | int  | | highest PCIe generation of the GPU
    gpu.pcie.gen_host_max   | int  | | highest PCIe generation of the root port; none in guests, 4 on a GB300 at Gen6
    gpu.pcie.width          | int  | | PCIe lanes now
    gpu.pcie.width_max      | int  | | most PCIe lanes
    gpu.pcie.replays        | int  | | PCIe replays since reset
    gpu.pcie.rollovers      | int  | | overflows of the replay counter

    gpu.fabric.state        | str  | | Not Started, In Progress, Completed
    gpu.fabric.status       | str  | | Success or the error of the fabric registration
    gpu.fabric.clique       | int  | | clique id
    gpu.fabric.cluster      | str  | | cluster UUID; all zero on a single HGX board
    gpu.fabric.health       | str  | | Healthy, Unhealthy, Limited Capacity
    gpu.fabric.bandwidth    | str  | | Full or Degraded
    gpu.fabric.route_recovery  | bool | | a route recovery is in progress
    gpu.fabric.route_unhealthy | bool | | a route is unhealthy
    gpu.fabric.access_recovery | bool | | an access timeout recovery is in progress
    gpu.fabric.misconfigured   | str  | | incorrect configuration: None, or which
    """,
)

// The end of `ration VERB --help`. Layer: cli.
#pragma once

namespace ration::cli {

inline constexpr const char *kConvertFooter =
    "--to:\n"
    "  chrome     trace of ui.perfetto.dev: what each device held, each block's life, each refusal\n"
    "  pprof      heap profile of `pprof`; inuse_ is what was never freed, or held at the peak (--at peak)\n"
    "  collapsed  one line a stack, for flame graphs: bytes at the peak, of all blocks, or never freed (--of)\n"
    "  torch      memory snapshot of pytorch.org/memory_viz\n"
    "  rmm-csv    allocation log of RMM, which its replay benchmark reads\n"
    "  csv        one row a record\n"
    "Callers are known in a log with --stacks; without them the driver function stands for the caller. Bytes are what "
    "a\n"
    "block takes, so they add up to what `ration report` says; blocks that are not charged are in chrome and csv "
    "only.\n"
    "A file is replaced when its conversion is complete.\n\n"
    "Examples:\n"
    "  ration run --stacks native --log run.jsonl -- ./train\n"
    "  ration convert run.jsonl --to chrome -o run.json        open it in ui.perfetto.dev\n"
    "  ration convert run.jsonl --to pprof --at peak -o run.pb.gz      `pprof -top run.pb.gz` reads it\n"
    "  ration convert run.jsonl --to collapsed | flamegraph.pl >run.svg\n\n"
    "Exit status: 0; 2 a bad option, or no whole log; 125 the output could not be written.";

inline constexpr const char *kCdiFooter =
    "Writes a specification of the Container Device Interface (CDI), which Podman, Docker, containerd and CRI-O read\n"
    "from /etc/cdi. Each SHARE is a device ration.dev/share=NAME, beside the GPU itself. Its name is the size, with "
    "pct\n"
    "for a percent sign. A container that asks for it gets the library and a limit for all its processes together; "
    "one\n"
    "that asks for another is refused by the engine. An image needs glibc 2.28 or later, and may run without the "
    "limit\n"
    "if it changes LD_PRELOAD. --enforce leaves no such choice: the library is in the container's /etc/ld.so.preload,\n"
    "and the limit in a locked /etc/ration. Without --state-dir each container keeps its own books. With it the "
    "folder\n"
    "is one user's: processes of another user get no memory.\n\n"
    "Examples:\n"
    "  ration cdi 25% 50% small=2GiB -o /etc/cdi/ration.json\n"
    "  podman run --device nvidia.com/gpu=0 --device ration.dev/share=25pct IMAGE\n"
    "  ration cdi 8GiB --enforce /etc/ration/cdi -o /etc/cdi/ration.json\n"
    "  ration cdi 50% --group lab --state-dir /var/lib/ration >ration.json\n\n"
    "Exit status: 0; 2 a bad option; 125 the output could not be written.";

inline constexpr const char *kDoctorFooter =
    "Without a word: the installation, the driver and its devices, other libraries that interpose it, the settings, "
    "the\n"
    "state folder, and whether this is a container. Behind --: what would keep the command from being held, and what\n"
    "would lose LD_PRELOAD on the way; through nice, env, sudo, sh -c and ration run it looks at the program at the "
    "end.\n"
    "The command is not started, only a program of Ration's own that asks the driver for its devices. --pid: whether a "
    "running process is held, from /proc and from the books that `ration ps` reads;\n"
    "as that does, it takes back what dead processes held. Nothing else on the machine is changed. Each finding has a\n"
    "remedy and an ID, for scripts; trouble comes first.\n\n"
    "LOG, written with --log: which functions its program asked the driver for that Ration does not know, or not in\n"
    "that version, what that means, and what can be done about it. A process that was killed has not written them.\n\n"
    "--coverage prints, of each driver export that concerns memory: the CUDA version that introduced it, the action\n"
    "that it needs, what Ration does, and its tests. Actions:\n"
    "  POOL   allocates or frees device memory, which a pool can serve\n"
    "  COUNT  takes, gives back or reports memory: to be charged, or shown as charged\n"
    "  VIRT   reports memory, or ends a context: to be answered for the limit and for blocks, not for slabs\n"
    "  XLATE  shares memory with another process: a block's handle is made from that of its slab\n"
    "  WATCH  takes no memory by itself, but decides who uses it, how long it lives, or when it can be reused\n"
    "  WRAP   hands out functions of the driver: hooked ones to be replaced\n"
    "  PASS   needs nothing; listed where Ration hooks it nevertheless\n"
    "hooked: Ration handles it. passed on: it goes to the driver, because it cannot exceed the limit. GAP: it can "
    "exceed\n"
    "the limit, or its answer is wrong.\n\n"
    "Examples:\n"
    "  ration doctor\n"
    "  RATION_LIMIT=8GiB ration doctor -- sudo ./train\n"
    "  ration doctor --pid 4711\n"
    "  ration doctor --json | jq '.findings[] | select(.severity == \"trouble\") | .id'\n"
    "  ration run --log run.jsonl -- ./train && ration doctor run.jsonl\n"
    "  ration doctor --coverage | grep GAP\n\n"
    "Exit status: 0 no trouble; 1 there is trouble, or the log does not say; 2 a bad option, or no whole log; 125 the\n"
    "output could not be written.";

inline constexpr const char *kDiffFooter =
    "Peaks, counts, refusals and leaks of both logs, by device, and what callers held at the peak, asked for in all "
    "and\n"
    "did not free: those that changed, the largest difference first. A caller is a function and its file, so lines "
    "may\n"
    "move; without --stacks it is the driver function. One that only B has is `new`, one that only A has `gone`.\n"
    "--fail-above: a size, or a part of A's peak, 0% for any growth.\n\n"
    "Examples:\n"
    "  ration diff before.jsonl after.jsonl --by library\n"
    "  ration diff main.jsonl branch.jsonl --fail-above 5%            for continuous integration\n"
    "  ration diff a.jsonl b.jsonl --json | jq '.devices[0].peak_bytes'\n\n"
    "Exit status: 0; 1 a peak has grown by more than --fail-above; 2 a bad option, or no whole log; 125 the output "
    "could\n"
    "not be written.";

}  // namespace ration::cli

/* The interface between the preloaded library and the core: one C struct in each direction. The preloaded library uses
 * only libc. At the first call it loads the core and passes a RationPreloadAbi; the core returns its hook bodies, one
 * for each row of hook_table.inc. Layer: none; preload and hooks may include it. Both sides are built together, so
 * their `build` must be equal. */
#ifndef RATION_CORE_ABI_H_
#define RATION_CORE_ABI_H_

#include <stdint.h>

/* Per-thread state in the static TLS of the preloaded library, where access never allocates. */
struct RationHeld {
  void (*release)(void *);
  void *what;
};
struct RationThread {
  int starting;     /* > 0: this thread is loading or starting the core */
  const void *call; /* where on the stack the thread entered a hook; NULL: it is in no hook */
  /* What the thread's hooks hold across driver calls (base/held.h), and how many entries did not fit in `held`. */
  struct RationHeld held[32];
  unsigned held_count;
  unsigned held_unnoted;
  int number; /* the thread's number, valid in the address space `numbered_in` (base/thread_number.h) */
  uint64_t numbered_in;
  uintptr_t stack_low, stack_high; /* the thread's own stack; both 1: unknown; both 0: not read yet */
  uint64_t stack;                  /* the log's number for the stack of its call; 0: none (events/call_stacks.h) */
};

/* Names that the program asked for (base/asked_names.h). Each name counts once. */
enum { RATION_NAMES_KEPT = 64, RATION_NAMES_COUNTED = 1536 };
struct RationName {
  uint32_t is_written;
  char text[108];
};
struct RationNames {
  uint32_t count;     /* stops at RATION_NAMES_COUNTED */
  uint32_t of_memory; /* of these, the functions that may take memory */
  uint32_t others;    /* of these, the functions that take none */
  uint32_t kept;      /* claims of entries of `first`, including those that found no free entry */
  struct RationName first[RATION_NAMES_KEPT];
  uint32_t seen[2048]; /* hashes of the names, with open addressing; 0: a free entry */
};

/* How often each route was taken; for display only, so racing increments may be lost. */
struct RationCoverage {
  uint64_t dlsym;                   /* results of dlsym and dlvsym that a hook replaced */
  uint64_t get_proc_address;        /* results of cuGetProcAddress that a hook replaced */
  uint64_t unknown_versions;        /* a hooked name was requested in an unknown version, and not replaced */
  struct RationNames unknown_names; /* functions that the driver has and the catalogue lacks */
  struct RationNames newer;         /* the names that `unknown_versions` counts, as NAME@VERSION */
  void (*changed)(void); /* a function of the core, called after a name was added; NULL: the core has not started */
};

/* preloaded library -> core */
struct RationPreloadAbi {
  const char *build;
  void *(*real_dlopen)(const char *, int);
  void *(*real_dlsym)(void *, const char *);
  void *(*driver)(void); /* dlopen handle of the process's libcuda, or NULL */
  struct RationThread *(*thread)(void);
  struct RationCoverage *coverage;
  void *const *entries; /* our export of each hook, in table order */
  unsigned hook_count;
  void *(*nvml)(void); /* dlopen handle of the libnvidia-ml that the program loaded, or NULL */
  int (*in_driver)(const void *code);
  void (*on_own_stack)(void (*function)(void *), void *argument);
  const uint32_t *limit_changes; /* how often the program has set its resource limits */
};

/* core -> preloaded library */
struct RationCoreAbi {
  const char *build;
  void *const *bodies; /* in table order; valid for the life of the process */
  unsigned hook_count;
  /* Called before any of `bodies`: resolves the driver, reads the settings, begins the log. 0: it failed,
   * and the preloaded library then answers without the core (column `closed` of the table). */
  int (*begin)(void);
  /* Called before any of `nvml_bodies`: looks up NVML's functions and initialises nothing else. */
  void (*begin_nvml)(void);
  void *const *nvml_bodies; /* in table order; valid for the life of the process */
  unsigned nvml_hook_count;
  /* Called by the main thread if it ends before other threads: ends the core's own threads. */
  void (*main_thread_ends)(void);
};

/* The core's only export. Returns NULL if the core could not start. */
typedef const struct RationCoreAbi *(*ration_core_start_t)(const struct RationPreloadAbi *);

#endif /* RATION_CORE_ABI_H_ */

// A plug-in of Slurm (spank(8)): holds each step that has shards of a GPU, or --gpu-mem=SIZE, to its part of the
// device's memory. It only sets variables of the step's tasks; Ration's library, preloaded into them, does the rest.
// Called from: srun, sbatch and salloc (the option), and slurmstepd, in each task before its program (the variables).
// Fails closed: a task whose limit cannot be set up is not started.
#define _GNU_SOURCE  // dladdr
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "size_syntax.h"  // config/values, or beside this file
#include "size_words.h"

SPANK_PLUGIN(ration, 1)

enum {
  REFUSED = -1,  // Slurm 22.05 takes a positive result, as ESPANK_ERROR is, for a success
  LONGEST_VALUE = 32768,
};
#define WHOLE_GPU 100000000ull  // shares are in millionths of a percent

// Bytes, or a share of the device.
struct size {
  bool is_share;
  uint64_t amount;
};

// The arguments of plugstack.conf.
static struct {
  char library[PATH_MAX];
  char state[PATH_MAX];  // empty: Ration's own default
  uint64_t shards;       // of one GPU; 0: not said
  uint64_t margin;       // a share
  uint64_t memory;       // of one GPU, in bytes; 0: not said
  bool guarantee;        // each of several tasks has an equal part guaranteed
  char mistake[1024];    // in the arguments; empty: none
} site = {.margin = 5 * WHOLE_GPU / 100, .guarantee = true};

static char asked_text[64];  // --gpu-mem; empty: not given
static struct size asked;

static int text_of(char *buffer, size_t length, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int text_of(char *buffer, size_t length, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int written = vsnprintf(buffer, length, format, arguments);
  va_end(arguments);
  return written >= 0 && (size_t)written < length ? 0 : -1;
}

// ---- sizes

// Reads `text` as Ration does: 8GiB, 512m, 40%, 0.4. False: it is none, too small, or more than a whole device.
static bool read_size(const char *text, struct size *size) {
  const struct RationSizeText read = ration_read_size(text, strlen(text));
  size->is_share = read.kind == RATION_SIZE_SHARE;
  size->amount = size->is_share ? (uint64_t)((RationWide)read.amount * WHOLE_GPU / read.whole) : read.amount;
  return size->is_share ? size->amount > 0 : read.kind == RATION_SIZE_BYTES && size->amount >= 1 << 20;
}

// Why read_size() takes no `text`, or why it is not a number of bytes, in the words of every other program.
static struct RationSizeWords wrong_size(const char *text, bool takes_share) {
  const size_t length = strlen(text);
  const struct RationSizeText read = ration_read_size(text, length);
  struct RationSizeWords words = {{0}, 0};
  if (takes_share && strchr(text, '=') != NULL) {
    ration_add(&words,
               "devices are not named here, the size is of each GPU of the job; write, for example, 8GiB or 40%");
  } else if (read.kind == RATION_SIZE_BYTES) {
    words = ration_small_size(text, length, read.amount, takes_share);
  } else if (read.kind != RATION_SIZE_SHARE) {
    words = ration_wrong_size(text, length, read, takes_share ? "8GiB, 40% or 0.4" : "80GiB");
  } else {
    ration_add(&words, takes_share ? "it is below a millionth of a percent"
                                   : "a percentage has no meaning here: write a size in bytes, such as 80GiB");
  }
  return words;
}

// Writes a size for Ration: 23.75%, or bytes.
static void write_size(struct size size, char *buffer, size_t length) {
  if (!size.is_share) {
    text_of(buffer, length, "%llu", (unsigned long long)size.amount);
    return;
  }
  text_of(buffer, length, "%llu.%06llu", (unsigned long long)(size.amount / 1000000),
          (unsigned long long)(size.amount % 1000000));
  size_t end = strlen(buffer);
  while (buffer[end - 1] == '0') {
    buffer[--end] = '\0';
  }
  end -= buffer[end - 1] == '.' ? 1 : 0;
  text_of(buffer + end, length - end, "%%");
}

static uint64_t bytes_of_share(uint64_t share) {
  return (uint64_t)((unsigned __int128)site.memory * share / WHOLE_GPU);
}

// ---- arguments and option

static void mistake(const char *argument, const char *remedy) {
  text_of(site.mistake, sizeof(site.mistake), "'%s' in plugstack.conf: %s", argument, remedy);
}

// A percentage below 100, with its sign or without. Nothing is one, too.
static bool read_margin(const char *text, uint64_t *margin) {
  char percent[32];
  struct size size;
  const size_t length = strlen(text);
  const bool has_sign = length > 0 && text[length - 1] == '%';
  if (text_of(percent, sizeof(percent), "%s%s", text, has_sign ? "" : "%") != 0) {
    return false;
  }
  if (ration_read_size(percent, strlen(percent)).kind == RATION_SIZE_EMPTY_SHARE) {
    *margin = 0;
    return true;
  }
  if (!read_size(percent, &size) || !size.is_share || size.amount == WHOLE_GPU) {
    return false;
  }
  *margin = size.amount;
  return true;
}

static void read_argument(const char *argument) {
  struct size size;
  if (strncmp(argument, "library=", 8) == 0) {
    if (text_of(site.library, sizeof(site.library), "%s", argument + 8) != 0) {
      mistake(argument, "the path is too long");
    }
  } else if (strncmp(argument, "state=", 6) == 0) {
    if (argument[6] != '/' || text_of(site.state, sizeof(site.state), "%s", argument + 6) != 0) {
      mistake(argument, "write a path that begins with /");
    }
  } else if (strncmp(argument, "shards=", 7) == 0) {
    char *end = NULL;
    site.shards = strtoull(argument + 7, &end, 10);
    if (!ration_is_digit(argument[7]) || *end != '\0' || site.shards == 0 || site.shards > 1000000) {
      mistake(argument, "write how many shards one GPU has, as gres.conf says, 1 to 1000000");
    }
  } else if (strncmp(argument, "margin=", 7) == 0) {
    if (!read_margin(argument + 7, &site.margin)) {
      mistake(argument, "write the percentage of a GPU, below 100, that is left to contexts, such as 5%");
    }
  } else if (strncmp(argument, "memory=", 7) == 0) {
    if (!read_size(argument + 7, &size) || size.is_share) {
      char why[600];
      text_of(why, sizeof(why), "the memory of one GPU: %s", wrong_size(argument + 7, false).text);
      mistake(argument, why);
    } else {
      site.memory = size.amount;
    }
  } else if (strcmp(argument, "guarantee=tasks") == 0 || strcmp(argument, "guarantee=none") == 0) {
    site.guarantee = argument[10] == 't';
  } else if (strncmp(argument, "guarantee=", 10) == 0) {
    mistake(argument, "write guarantee=tasks, the default, or guarantee=none");
  } else {
    mistake(argument, "known are library= shards= margin= memory= guarantee= state=");
  }
}

// lib/libration.so of the prefix in which this file is lib/ration/slurm/spank_ration.so.
static void find_library(void) {
  Dl_info own;
  char folder[PATH_MAX];
  if (dladdr(&site, &own) == 0 || realpath(own.dli_fname, folder) == NULL) {
    return;
  }
  for (int up = 0; up < 3; ++up) {
    char *slash = strrchr(folder, '/');
    if (slash == NULL) {
      return;
    }
    *slash = '\0';
  }
  text_of(site.library, sizeof(site.library), "%s/libration.so", folder);
}

// In srun, sbatch and salloc, and again in slurmstepd, whose plugstack.conf may be another one.
static int read_option(int value, const char *text, int remote) {
  (void)value;
  (void)remote;
  text = text == NULL ? "" : text;
  if (text_of(asked_text, sizeof(asked_text), "%s", text) != 0) {
    text_of(site.mistake, sizeof(site.mistake), "--gpu-mem=%s: it is too long for a size; write, for example, 8GiB",
            text);
  } else if (!read_size(asked_text, &asked)) {
    text_of(site.mistake, sizeof(site.mistake), "--gpu-mem=%s: %s", asked_text, wrong_size(asked_text, true).text);
  } else if (site.memory != 0 && !asked.is_share && asked.amount > site.memory) {
    text_of(site.mistake, sizeof(site.mistake), "--gpu-mem=%s is more than the %llu MiB of a GPU", asked_text,
            (unsigned long long)(site.memory >> 20));
  } else {
    return ESPANK_SUCCESS;
  }
  if (remote == 0) {
    slurm_error("ration: %s", site.mistake);
  }
  return REFUSED;
}

static struct spank_option gpu_mem = {
    "gpu-mem", "SIZE", "memory of each GPU that all tasks of a node may take together: 8GiB, 512m or 40%",
    1,         0,      read_option};

int slurm_spank_init(spank_t spank, int count, char **arguments) {
  const spank_context_t context = spank_context();
  if (context == S_CTX_SLURMD || context == S_CTX_JOB_SCRIPT) {
    return ESPANK_SUCCESS;
  }
  find_library();
  for (int i = 0; i < count && site.mistake[0] == '\0'; ++i) {
    read_argument(arguments[i]);
  }
  return spank_option_register(spank, &gpu_mem) == ESPANK_SUCCESS ? ESPANK_SUCCESS : REFUSED;
}

// ---- a task

// Where the variables are set, and what its step has.
struct task {
  spank_t spank;
  uint32_t job;
  char step[16];      // as Slurm names it: 0, batch
  bool is_whole_job;  // its limit is that of all steps that it starts
  uint64_t shards;    // on this node; 0: none
  uint64_t gpus;
  uint32_t neighbours;  // tasks of the step on this node, with itself
};

// Says in the task's output, and in slurmd's log, why it is not started.
static void refuse(const struct task *task, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void refuse(const struct task *task, const char *format, ...) {
  char why[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why, sizeof(why), format, arguments);
  va_end(arguments);
  slurm_error("ration: step %u.%s is not started: %s", task->job, task->step, why);
}

static uint64_t number_in(spank_t spank, const char *name) {
  char text[32];
  return spank_getenv(spank, name, text, sizeof(text)) == ESPANK_SUCCESS ? strtoull(text, NULL, 10) : 0;
}

static bool describe(spank_t spank, struct task *task) {
  uint32_t step = 0;
  *task = (struct task){.spank = spank};
  if (spank_get_item(spank, S_JOB_ID, &task->job) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &task->neighbours) != ESPANK_SUCCESS) {
    return false;
  }
  task->is_whole_job = step == SLURM_BATCH_SCRIPT || step == SLURM_INTERACTIVE_STEP;
  if (task->is_whole_job) {
    text_of(task->step, sizeof(task->step), "%s", step == SLURM_BATCH_SCRIPT ? "batch" : "interactive");
  } else {
    text_of(task->step, sizeof(task->step), "%u", step);
  }
  // Slurm sets both itself, and unsets them in steps without a share, whatever the user's environment says.
  task->shards = number_in(spank, "SLURM_SHARDS_ON_NODE");
  task->gpus = number_in(spank, "SLURM_GPUS_ON_NODE");
  return true;
}

// The dynamic loader would start the program without a library that it cannot load. 0, or an errno.
static int library_error(const char *path) {
  Elf64_Ehdr own;
  Elf64_Ehdr header;
  const char *const paths[] = {"/proc/self/exe", path};
  Elf64_Ehdr *const headers[] = {&own, &header};
  for (int i = 0; i < 2; ++i) {
    const int file = open(paths[i], O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      return errno;
    }
    const ssize_t got = read(file, headers[i], sizeof(own));
    const int problem = got < 0 ? errno : got == (ssize_t)sizeof(own) ? 0 : ENOEXEC;
    close(file);
    if (problem != 0) {
      return problem;
    }
  }
  return memcmp(own.e_ident, header.e_ident, EI_DATA + 1) == 0 && own.e_machine == header.e_machine ? 0 : ENOEXEC;
}

// Any other library would be preloaded, and limit nothing.
static bool is_ours(const char *path) {
  static const char name[] = "libration.so";
  static const char core[] = "libration-core.so";
  char beside[PATH_MAX];
  const char *const slash = strrchr(path, '/');
  return slash != NULL && strcmp(slash + 1, name) == 0 &&
         text_of(beside, sizeof(beside), "%.*s%s", (int)(slash + 1 - path), path, core) == 0 &&
         library_error(beside) == 0;
}

// The list of LD_PRELOAD without the library, with `first` before the rest.
static bool without_library(const char *list, const char *first, char *result, size_t length) {
  if (text_of(result, length, "%s", first) != 0) {
    return false;
  }
  const size_t own = strlen(site.library);
  for (const char *item = list; *item != '\0';) {
    const size_t size = strcspn(item, ": ");
    const bool is_ours = size == own && strncmp(item, site.library, own) == 0;
    const size_t used = strlen(result);
    if (size != 0 && !is_ours &&
        text_of(result + used, length - used, "%s%.*s", used == 0 ? "" : ":", (int)size, item) != 0) {
      return false;
    }
    item += size + (item[size] == '\0' ? 0 : 1);
  }
  return true;
}

// The limit of all the job's steps on this node together. Ration knows it by a number of 16 digits, of which `ration
// ps` shows the first eight. Steps find it in the environment of the script that starts them.
static void write_job(const struct task *task, const char *limit, char *buffer, size_t length) {
  // A job of a federation has more digits.
  text_of(buffer, length, task->job < 100000000 ? "%08u00000000=%s" : "%08x00000001=%s", task->job, limit);
}

// Whether the step has inherited a limit of its job that begins with `item`.
static bool inherits(const struct task *task, const char *item) {
  static char inherited[LONGEST_VALUE];
  return spank_getenv(task->spank, "RATION_GROUP_TREE", inherited, sizeof(inherited)) == ESPANK_SUCCESS &&
         strncmp(inherited, item, strlen(item)) == 0;
}

// Whether --gpu-mem was asked of the whole job: Slurm hands it down to each step.
static bool is_of_job(const struct task *task) {
  char limit[32];
  char tree[128];
  write_size(asked, limit, sizeof(limit));
  write_job(task, limit, tree, sizeof(tree));
  return !task->is_whole_job && inherits(task, tree);
}

static bool too_much(const struct task *task, struct size limit) {
  char share[32];
  write_size(limit, share, sizeof(share));
  refuse(task, "--gpu-mem=%s is more than its %llu of %llu shards, %s of a GPU", asked_text,
         (unsigned long long)task->shards, (unsigned long long)site.shards, share);
  return false;
}

// The part of the device that the step may take. False: refused, in words.
static bool limit_of(const struct task *task, struct size *limit) {
  if (task->shards == 0) {
    *limit = asked;
    return true;
  }
  if (site.shards == 0) {
    refuse(task, "plugstack.conf does not say how many shards a GPU has (shards=)");
    return false;
  }
  if (task->shards > site.shards || task->gpus > 1) {
    refuse(task, "it has %llu shards on %llu GPUs, and shares are of one GPU, which has %llu in plugstack.conf",
           (unsigned long long)task->shards, (unsigned long long)task->gpus, (unsigned long long)site.shards);
    return false;
  }
  *limit = (struct size){true, task->shards * (WHOLE_GPU - site.margin) / site.shards};
  if (asked_text[0] == '\0') {
    return true;
  }
  if (!asked.is_share && site.memory == 0) {
    refuse(task,
           "plugstack.conf does not say how much memory a GPU has (memory=), so --gpu-mem beside shards must be a "
           "percentage");
    return false;
  }
  if (asked.amount > (asked.is_share ? limit->amount : bytes_of_share(limit->amount))) {
    return is_of_job(task) || too_much(task, *limit);
  }
  *limit = asked;
  return true;
}

static bool set(const struct task *task, const char *name, const char *value) {
  if (value == NULL) {
    spank_unsetenv(task->spank, name);
    return true;
  }
  if (spank_setenv(task->spank, name, value, 1) == ESPANK_SUCCESS) {
    return true;
  }
  refuse(task, "%s could not be set", name);
  return false;
}

static bool set_library(const struct task *task, const char *first) {
  static char before[LONGEST_VALUE];
  static char after[LONGEST_VALUE];
  const spank_err_t found = spank_getenv(task->spank, "LD_PRELOAD", before, sizeof(before));
  if (found == ESPANK_ENV_NOEXIST) {
    before[0] = '\0';
  } else if (found != ESPANK_SUCCESS) {
    refuse(task, "its LD_PRELOAD is too long");
    return false;
  }
  if (!without_library(before, first, after, sizeof(after))) {
    refuse(task, "its LD_PRELOAD is too long");
    return false;
  }
  return set(task, "LD_PRELOAD", after[0] == '\0' ? NULL : after);
}

static bool set_job(const struct task *task, const char *limit) {
  char tree[128];
  write_job(task, limit, tree, sizeof(tree));
  if (task->is_whole_job) {
    return set(task, "RATION_GROUP_TREE", tree);
  }
  // Another job's, where this one was submitted from inside it, would be of another share.
  write_job(task, "", tree, sizeof(tree));
  return inherits(task, tree) || set(task, "RATION_GROUP_TREE", NULL);
}

static bool set_state(const struct task *task) {
  char folder[PATH_MAX + 16];
  const char *const user = strstr(site.state, "%u");
  if (user == NULL) {
    return set(task, "RATION_STATE_DIR", site.state[0] == '\0' ? NULL : site.state);
  }
  text_of(folder, sizeof(folder), "%.*s%u%s", (int)(user - site.state), site.state, (unsigned)geteuid(), user + 2);
  return set(task, "RATION_STATE_DIR", folder);
}

static bool set_limits(const struct task *task, struct size limit) {
  char group[64];
  char whole[48];
  char part[48];
  text_of(group, sizeof(group), "slurm-%u.%s", task->job, task->step);
  write_size(limit, whole, sizeof(whole));
  const struct size each = {limit.is_share, limit.amount / (task->neighbours != 0 ? task->neighbours : 1)};
  write_size(each, part, sizeof(part));
  const bool shares = site.guarantee && task->neighbours > 1 && (each.is_share || each.amount >= 1 << 20);
  return set(task, "RATION_GROUP", group) && set(task, "RATION_GROUP_LIMIT", whole) &&
         set(task, "RATION_LIMIT", whole) && set(task, "RATION_GUARANTEE", shares ? part : NULL) &&
         set(task, "RATION_MANAGED", "limit") && set(task, "RATION_DISABLE", NULL) && set_state(task) &&
         set_job(task, whole);
}

// A step without a share that a step with one has started inherits the variables: takes back what this file set.
static bool leave_alone(const struct task *task) {
  static const char *const ours[] = {"RATION_GROUP",   "RATION_GROUP_LIMIT", "RATION_LIMIT",     "RATION_GUARANTEE",
                                     "RATION_MANAGED", "RATION_STATE_DIR",   "RATION_GROUP_TREE"};
  char group[80];
  if (spank_getenv(task->spank, "RATION_GROUP", group, sizeof(group)) != ESPANK_SUCCESS ||
      strncmp(group, "slurm-", 6) != 0) {
    return true;
  }
  for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); ++i) {
    set(task, ours[i], NULL);
  }
  return set_library(task, "");
}

static uint64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

// Sets up the task. False: refused, in words.
static bool begin(const struct task *task) {
  struct size limit;
  if (site.mistake[0] != '\0') {
    refuse(task, "%s", site.mistake);
    return false;
  }
  const int problem = library_error(site.library);
  if (problem == 0 && !is_ours(site.library)) {
    refuse(task,
           "the library '%s' (library= in plugstack.conf) is not libration.so with its libration-core.so beside it",
           site.library);
    return false;
  }
  if (problem != 0 || strpbrk(site.library, ": ") != NULL) {
    refuse(task, "the library '%s' (library= in plugstack.conf) cannot be preloaded: %s", site.library,
           problem == ENOEXEC ? "it is not a library of this machine"
           : problem != 0     ? strerror(problem)
                              : "its path has a space or a colon");
    return false;
  }
  return limit_of(task, &limit) && set_library(task, site.library) && set_limits(task, limit);
}

// As the user, in the task's process, after Slurm has set its own variables and before it starts the program. Ends the
// process itself: where plugstack.conf calls the plug-in `optional`, Slurm would start the program nevertheless.
int slurm_spank_task_init(spank_t spank, int count, char **arguments) {
  (void)count;
  (void)arguments;
  const uint64_t begun = now_us();
  struct task task;
  if (!describe(spank, &task)) {
    slurm_error("ration: a task is not started: Slurm does not say which step it is of");
    _exit(EXIT_FAILURE);
  }
  const bool has_limit = task.shards != 0 || asked_text[0] != '\0';
  if (!(has_limit ? begin(&task) : leave_alone(&task))) {
    _exit(EXIT_FAILURE);
  }
  if (has_limit) {
    slurm_verbose("ration: step %u.%s has its limit, set in %llu us", task.job, task.step,
                  (unsigned long long)(now_us() - begun));
  }
  return ESPANK_SUCCESS;
}

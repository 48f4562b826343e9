// slurm_host PLUGIN SIZE ARGUMENT...: loads the plug-in of Slurm as slurmstepd does, with the arguments of
// plugstack.conf, asks for --gpu-mem=SIZE, and prints the variables that it sets for a task. What it refuses goes to
// stderr; the exit status is then 1.
#include <dlfcn.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdio.h>

static struct spank_option *option;

spank_context_t spank_context(void) {
  return S_CTX_REMOTE;
}

spank_err_t spank_option_register(spank_t spank, struct spank_option *registered) {
  (void)spank;
  option = registered;
  return ESPANK_SUCCESS;
}

// The first step of the first job, with one task.
spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...) {
  (void)spank;
  va_list arguments;
  va_start(arguments, item);
  *va_arg(arguments, uint32_t *) = item == S_JOB_STEPID ? 0 : 1;
  va_end(arguments);
  return ESPANK_SUCCESS;
}

spank_err_t spank_getenv(spank_t spank, const char *name, char *value, int length) {
  (void)spank, (void)name, (void)value, (void)length;
  return ESPANK_ENV_NOEXIST;
}

spank_err_t spank_setenv(spank_t spank, const char *name, const char *value, int overwrite) {
  (void)spank, (void)overwrite;
  printf("%s=%s\n", name, value);
  fflush(stdout);
  return ESPANK_SUCCESS;
}

spank_err_t spank_unsetenv(spank_t spank, const char *name) {
  (void)spank, (void)name;
  return ESPANK_SUCCESS;
}

void slurm_error(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
}

void slurm_verbose(const char *format, ...) {
  (void)format;
}

typedef int (*Callback)(spank_t, int, char **);

int main(int count, char **arguments) {
  void *const plugin = count > 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
  if (plugin == NULL) {
    fprintf(stderr, "slurm_host: %s\n", count > 2 ? dlerror() : "PLUGIN SIZE ARGUMENT...");
    return 2;
  }
  const Callback init = (Callback)dlsym(plugin, "slurm_spank_init");
  const Callback task_init = (Callback)dlsym(plugin, "slurm_spank_task_init");
  if (init(NULL, count - 3, arguments + 3) != ESPANK_SUCCESS || option == NULL ||
      option->cb(option->val, arguments[2], 0) != ESPANK_SUCCESS) {
    return 1;
  }
  return task_init(NULL, count - 3, arguments + 3) == ESPANK_SUCCESS ? 0 : 1;
}

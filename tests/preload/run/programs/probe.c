/* What a command finds when it starts, and which signals reach it. Uses no CUDA. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t interrupts;

static void count_interrupt(int signal) {
  (void)signal;
  interrupts++;
}

/* "ready", then the number of the first signal of those that are forwarded; exits with it. */
static int await_signal(void) {
  sigset_t set;
  int signal = 0;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGQUIT);
  sigprocmask(SIG_BLOCK, &set, NULL);
  puts("ready");
  fflush(stdout);
  sigwait(&set, &signal);
  printf("signal %d\n", signal);
  return signal;
}

/* "ready", a line for the first interrupt; at SIGTERM the number of all interrupts. */
static int count_interrupts(void) {
  sigset_t terminate, before;
  struct sigaction action;
  int signal = 0, told = 0;
  memset(&action, 0, sizeof(action));
  action.sa_handler = count_interrupt;
  sigaction(SIGINT, &action, NULL);
  sigemptyset(&terminate);
  sigaddset(&terminate, SIGTERM);
  sigaddset(&terminate, SIGINT);
  sigprocmask(SIG_BLOCK, &terminate, &before);
  puts("ready");
  fflush(stdout);
  while (1) {
    sigwait(&terminate, &signal);
    if (signal == SIGTERM) break;
    interrupts++;
    if (!told++) puts("interrupted"), fflush(stdout);
  }
  printf("interrupts %d\n", (int)interrupts);
  return 0;
}

static int show_start(void) {
  sigset_t mask;
  struct stat status;
  struct sigaction action;
  int i;
  sigprocmask(SIG_BLOCK, NULL, &mask);
  for (i = 1; i < 32; i++) {
    sigaction(i, NULL, &action);
    printf("%d%s%s\n", i, sigismember(&mask, i) ? " blocked" : "", action.sa_handler == SIG_IGN ? " ignored" : "");
  }
  for (i = 0; i < 256; i++) {
    if (fstat(i, &status) == 0) printf("descriptor %d\n", i);
  }
  return 0;
}

/* Stops itself; a child continues it once the kernel shows it stopped. */
static int stop_and_go(void) {
  pid_t self = getpid();
  pid_t child = fork();
  if (child == 0) {
    char path[64], text[512], *state;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)self);
    do {
      FILE *file = fopen(path, "r");
      size_t count = file == NULL ? 0 : fread(text, 1, sizeof(text) - 1, file);
      if (file != NULL) fclose(file);
      text[count] = 0;
      state = strrchr(text, ')');
    } while (state == NULL || state[2] != 'T');
    kill(self, SIGCONT);
    _exit(0);
  }
  raise(SIGSTOP);
  waitpid(child, NULL, 0);
  return 5;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "await")) return await_signal();
  if (!strcmp(what, "count")) return count_interrupts();
  if (!strcmp(what, "start")) return show_start();
  if (!strcmp(what, "stop")) return stop_and_go();
  if (!strcmp(what, "secure")) return printf("secure %lu\n", getauxval(AT_SECURE)) < 0;
  if (!strcmp(what, "preload")) return puts(getenv("LD_PRELOAD") == NULL ? "(none)" : getenv("LD_PRELOAD")) < 0;
  return 64;
}

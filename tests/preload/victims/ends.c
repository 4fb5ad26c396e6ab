// Prints its pid, writes "ends", then ends in the given way. Usage: ends HOW [NUMBER]
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int file;

static int is(const char* a, const char* b) { return strcmp(a, b) == 0; }

static void* write_more(void* nothing) {
  if (write(file, "more", 4) != 4) _exit(4);
  return nothing;
}

/* Ends the main thread while another one still writes; the process ends with the last thread. */
static void end_thread(void) {
  pthread_t other;
  if (pthread_create(&other, NULL, write_more, NULL) != 0) _exit(5);
  pthread_exit(NULL);
}

/* A child that ends with `code`, and a parent that ends with the status that it waited for. */
static void end_child(int code) {
  const pid_t child = fork();
  if (child == 0) exit(code);
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) _exit(6);
  exit(WEXITSTATUS(status));
}

static int handler_status;

static void end_in_handler(int number) {
  (void)number;
  _exit(handler_status);
}

/* A signal handler ends the process while it ends already: many mappings make that last for
   longer than the timer of 1 ms. */
static void end_twice(int status) {
  const struct itimerval soon = {{0, 0}, {0, 1000}};
  enum { kMappings = 4000 };
  const long page = sysconf(_SC_PAGESIZE);
  handler_status = status;
  for (int i = 0; i < kMappings; ++i)
    if (mmap(NULL, page, PROT_READ, i % 2 ? MAP_SHARED : MAP_PRIVATE, file, 0) == MAP_FAILED)
      _exit(7);
  signal(SIGALRM, end_in_handler);
  if (setitimer(ITIMER_REAL, &soon, NULL) != 0) _exit(8);
  exit(14);
}

static void end(const char* how, int number) {
  if (is(how, "exit")) exit(number);
  if (is(how, "_exit")) _exit(number);
  if (is(how, "_Exit")) _Exit(number);
  if (is(how, "quick_exit")) quick_exit(number);
  if (is(how, "exit_group")) syscall(SYS_exit_group, number);
  if (is(how, "abort")) abort();
  if (is(how, "signal")) {
    signal(number, SIG_DFL);
    kill(getpid(), number);
  }
  if (is(how, "segv")) *(volatile int*)(long)number = 0;
  if (is(how, "handler")) end_twice(number);
  if (is(how, "thread")) end_thread();
  if (is(how, "fork")) end_child(number);
  if (is(how, "exec")) execlp("true", "true", (char*)NULL);
  if (is(how, "failed exec")) execl("/no/such/program", "x", (char*)NULL);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  dprintf(1, "%d\n", getpid());
  file = open("ends", O_RDWR | O_CREAT, 0644);
  for (int i = 0; i < 1000; ++i)
    if (write(file, "0123456789", 10) != 10) return 3;
  const int number = argc > 2 ? atoi(argv[2]) : 0;
  if (is(argv[1], "return")) return number;
  end(argv[1], number);
  write_more(NULL);
  return 13;
}

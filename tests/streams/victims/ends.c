// ends HOW [NUMBER]: writes to a file in various ways, and ends.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const char kName[] = "out.dat";
static int out;

static int is(const char* how, const char* name) { return strcmp(how, name) == 0; }

static int open_out(int flags) {
  out = open(kName, O_WRONLY | O_CREAT | flags, 0644);
  if (out < 0) exit(20);
  return out;
}

static void put(int file, const char* text) {
  if (write(file, text, strlen(text)) != (ssize_t)strlen(text)) _exit(21);
}

// ---- the default action of a signal

static void restore_and_raise(int number) {
  signal(number, SIG_DFL);
  raise(number);
}

static void put_and_raise(int number) {
  put(out, "from the handler\n");
  raise(number);
}

static void die(const char* how, int number) {
  struct sigaction once = {.sa_handler = put_and_raise, .sa_flags = SA_RESETHAND | SA_NODEFER};
  open_out(O_TRUNC);
  put(out, "before the signal\n");
  if (is(how, "restored")) signal(number, restore_and_raise);
  if (is(how, "default")) signal(number, SIG_DFL);
  if (is(how, "once")) sigaction(number, &once, NULL);
  if (is(how, "sysv")) sysv_signal(number, put_and_raise);
  raise(number);
}

static void show_actions(void) {
  struct sigaction now, mine = {.sa_handler = restore_and_raise, .sa_flags = SA_RESETHAND};
  sigaction(SIGTERM, NULL, &now);
  printf("first %d\n", now.sa_handler == SIG_DFL);
  printf("signal %d\n", signal(SIGTERM, SIG_DFL) == SIG_DFL);
  sigaction(SIGTERM, &mine, &now);
  printf("before %d\n", now.sa_handler == SIG_DFL);
  sigaction(SIGTERM, &now, &mine);
  printf("once %d\n", mine.sa_handler == restore_and_raise);
  printf("flag %d\n", (mine.sa_flags & (int)SA_RESETHAND) != 0);
  printf("sigset %d\n", sigset(SIGTERM, SIG_IGN) == SIG_DFL);
  printf("ignored %d\n", sigset(SIGTERM, SIG_DFL) == SIG_IGN);
  printf("sysv %d\n", sysv_signal(SIGTERM, restore_and_raise) == SIG_DFL);
  printf("set %d\n", signal(SIGTERM, SIG_IGN) == restore_and_raise);
}

static int fill_stack(volatile int depth) {
  volatile char bytes[4096];
  bytes[0] = (char)depth;
  return fill_stack(depth + 1) + bytes[0];
}

// ---- a handler that ends the process while it is in a call on the file

static volatile long* written;
static volatile int ends_by_exit;

static void end_in_handler(int number) {
  (void)number;
  put(out, "end\n");
  if (ends_by_exit) exit(7);
  _exit(7);
}

static void write_until_signal(long delay) {
  const struct itimerval soon = {{0, 0}, {0, delay}};
  open_out(O_TRUNC);
  signal(SIGALRM, end_in_handler);
  setitimer(ITIMER_REAL, &soon, NULL);
  for (;;) {
    put(out, "0123456789abcde\n");
    ++*written;
  }
}

/// The file must have all lines of returned writes, at most one more, and then that of the handler.
static int is_complete(void) {
  static char text[64 << 20];
  const int in = open(kName, O_RDONLY);
  const long size = read(in, text, sizeof text);
  close(in);
  const long lines = (size - 4) / 16;
  for (long i = 0; i < lines; ++i)
    if (memcmp(text + 16 * i, "0123456789abcde\n", 16) != 0) return 0;
  return size % 16 == 4 && memcmp(text + size - 4, "end\n", 4) == 0 &&
         (lines == *written || lines == *written + 1);
}

static void end_in_handlers(int repetitions) {
  int complete = 0;
  for (int i = 0; i < repetitions; ++i) {
    *written = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) write_until_signal(1000 + i * 137);
    int status;
    waitpid(child, &status, 0);
    const int good = WIFEXITED(status) && WEXITSTATUS(status) == 7 && is_complete();
    if (!good) printf("status %x after %ld lines\n", (unsigned)status, *written);
    complete += good;
  }
  printf("complete %d\n", complete);
}

// ---- streams

static void end_with_stream(const char* how) {
  FILE* stream = fopen(kName, "w");
  for (int i = 0; i < 20000; ++i) fprintf(stream, "line %6d\n", i);
  if (is(how, "stream_exec")) execlp("true", "true", (char*)NULL);
  if (is(how, "stream_quick_exit")) quick_exit(0);
  _exit(0);
}

/// A child that a signal ends must not write the bytes of its parent.
static void end_child_with_stream(void) {
  FILE* stream = fopen(kName, "w");
  fprintf(stream, "once\n");
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGTERM);
    _exit(1);
  }
  waitpid(child, NULL, 0);
  fclose(stream);
}

int main(int argc, char** argv) {
  const char* how = argv[1];
  const int number = argc > 2 ? atoi(argv[2]) : 0;
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  written = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (is(how, "actions")) show_actions();
  if (is(how, "signal") || is(how, "restored") || is(how, "default") || is(how, "once") ||
      is(how, "sysv"))
    die(how, number);
  if (is(how, "overflow")) {
    open_out(O_TRUNC);
    put(out, "before the end of the stack\n");
    return fill_stack(0);
  }
  ends_by_exit = is(how, "handler_exit");
  if (is(how, "handler_exit") || is(how, "handler__exit")) end_in_handlers(number);
  if (strncmp(how, "stream", 6) == 0) end_with_stream(how);
  if (is(how, "child_with_stream")) end_child_with_stream();
  return 0;
}

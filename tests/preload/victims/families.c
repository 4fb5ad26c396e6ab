// Processes that create processes. Usage: families SCENARIO
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)  \
  do {                    \
    if (!(condition)) {   \
      perror(#condition); \
      abort();            \
    }                     \
  } while (0)

extern char** environ;
static char block[4096];

static int wait_for(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Parent and child write to a shared descriptor: 100 bytes from the parent, 30 from the child, 5
// from the parent.
static void test_fork(void) {
  const int fd = open("forked", O_WRONLY | O_CREAT, 0644);
  CHECK(write(fd, block, 100) == 100);
  const pid_t child = fork();
  if (child == 0) {
    CHECK(write(fd, block, 30) == 30 && close(fd) == 0);
    const int own = open("child", O_WRONLY | O_CREAT, 0644);
    CHECK(write(own, block, 3) == 3);
    exit(5);
  }
  CHECK(wait_for(child) == 5 && write(fd, block, 5) == 5 && close(fd) == 0);
}

// The child opens a file that its parent has closed, by the same absolute name.
static void reopen(void) {
  char name[4096];
  CHECK(getcwd(name, sizeof name - 16) != NULL);
  strcat(name, "/reopened");
  for (int i = 0; i < 3; ++i) close(open(name, O_WRONLY | O_CREAT, 0644));
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 2; ++i) close(open(name, O_RDONLY));
    _exit(5);
  }
  CHECK(wait_for(child) == 5);
  close(open(name, O_RDONLY));
}

static void grandchildren(void) {
  for (int i = 0; i < 3; ++i) {
    const pid_t child = i == 1 ? _Fork() : fork();
    if (child != 0) {
      CHECK(wait_for(child) == 0);
      break;
    }
  }
  const int fd = open("generations", O_WRONLY | O_CREAT | O_APPEND, 0644);
  CHECK(write(fd, block, 10) == 10);
  _exit(0);
}

// The child of a vfork has its own descriptors.
static void test_vfork(void) {
  const int fd = open("parent", O_WRONLY | O_CREAT, 0644);
  CHECK(write(fd, block, 100) == 100);
  volatile int before = 12345;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      const int out = open("child", O_WRONLY | O_CREAT | O_APPEND, 0644);
      dup2(out, fd);
      dup2(out, 1);
      close(out);
      execlp("echo", "echo", "hello", (char*)NULL);
      _exit(127);
    }
    CHECK(child > 0 && wait_for(child) == 0);
  }
  CHECK(before == 12345 && write(fd, block, 50) == 50 && close(fd) == 0);
  const pid_t child = vfork();
  if (child == 0) _exit(33);
  CHECK(wait_for(child) == 33);
}

static void test_spawn(void) {
  char* words[] = {"sh", "-c", "echo spawned > spawned", NULL};
  pid_t child;
  CHECK(posix_spawnp(&child, "sh", NULL, NULL, words, environ) == 0 && wait_for(child) == 0);
  CHECK(system("echo system > system") == 0);
  FILE* f = popen("cat > popen", "w");
  CHECK(fputs("popen\n", f) >= 0 && pclose(f) == 0);
  CHECK(posix_spawnp(&child, "/no/such/program", NULL, NULL, words, environ) == ENOENT);
}

static void chain(int argc, char** argv) {
  const int left = argc > 2 ? atoi(argv[2]) : 3;
  const int fd = open("chain", O_WRONLY | O_CREAT | O_APPEND, 0644);
  CHECK(write(fd, block, 10) == 10 && close(fd) == 0);
  char next[16];
  snprintf(next, sizeof next, "%d", left - 1);
  char* words[] = {argv[0], "chain", next, NULL};
  if (left > 0) execv("/proc/self/exe", words);
}

enum { kThreads = 8, kCalls = 5000 };

static void* write_own(void* number) {
  char name[32];
  snprintf(name, sizeof name, "thread%d", (int)(long)number);
  const int fd = open(name, O_WRONLY | O_CREAT, 0644),
            shared = open("shared", O_WRONLY | O_CREAT, 0644);
  for (int i = 0; i < kCalls; ++i)
    CHECK(write(fd, block, 7) == 7 && pwrite(shared, block, 3, i * 3) == 3);
  for (int i = 0; i < 200; ++i) close(open("again", O_RDONLY | O_CREAT, 0644));
  return NULL;
}

static void threads(void) {
  pthread_t workers[kThreads];
  for (long i = 0; i < kThreads; ++i)
    CHECK(pthread_create(&workers[i], NULL, write_own, (void*)i) == 0);
  for (int i = 0; i < 20; ++i) {  // fork while the other threads write
    const pid_t child = fork();
    if (child == 0) {
      const int fd = open("forked", O_WRONLY | O_CREAT | O_APPEND, 0644);
      _exit(write(fd, block, 2) == 2 ? 0 : 1);
    }
    CHECK(wait_for(child) == 0);
  }
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(workers[i], NULL) == 0);
}

static int signal_file;
static volatile long handled;
static void on_alarm(int number) {
  (void)number;
  const int saved = errno;
  CHECK(write(signal_file, block, 1) == 1);
  ++handled;
  errno = saved;
}

// A signal handler that writes interrupts a loop that writes.
static void signals(void) {
  signal_file = open("handler", O_WRONLY | O_CREAT, 0644);
  const int fd = open("loop", O_WRONLY | O_CREAT, 0644);
  struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  for (int i = 0; i < 100000; ++i) {
    errno = 77;
    CHECK(pwrite(fd, block, 10, 0) == 10 && errno == 77);
  }
  setitimer(ITIMER_REAL, &never, NULL);
  printf("%ld\n", handled);
}

static void* read_forever(void* fd) {
  CHECK(read((int)(long)fd, block, 10) == 10);
  return NULL;
}

static void test_cancel(void) {
  int ends[2];
  CHECK(pipe(ends) == 0 && dup2(ends[0], 0) == 0);
  pthread_t reader;
  void* result;
  CHECK(pthread_create(&reader, NULL, read_forever, (void*)0L) == 0);
  usleep(50000);
  CHECK(pthread_cancel(reader) == 0 && pthread_join(reader, &result) == 0 &&
        result == PTHREAD_CANCELED);
  CHECK(write(open("afterwards", O_WRONLY | O_CREAT, 0644), block, 9) == 9);
}

static volatile int mapping = 1;

static void* map_again(void* fd) {
  while (mapping) {
    void* place = mmap(NULL, sizeof block, PROT_READ, MAP_SHARED, (int)(long)fd, 0);
    CHECK(place != MAP_FAILED && munmap(place, sizeof block) == 0);
  }
  return NULL;
}

// Forks while another thread changes the table of mappings, which is never empty.
static void test_mappings(void) {
  const int fd = open("mapped", O_RDWR | O_CREAT, 0644);
  pthread_t mapper;
  CHECK(write(fd, block, sizeof block) == sizeof block);
  CHECK(mmap(NULL, sizeof block, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
  CHECK(pthread_create(&mapper, NULL, map_again, (void*)(long)fd) == 0);
  for (int i = 0; i < 300; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK(wait_for(child) == 0);
  }
  mapping = 0;
  CHECK(pthread_join(mapper, NULL) == 0);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "chain") == 0) return chain(argc, argv), 0;
  const struct {
    const char* name;
    void (*run)(void);
  } scenarios[] = {
      {"forked", test_fork},   {"reopened", reopen},       {"grandchildren", grandchildren},
      {"vforked", test_vfork}, {"spawned", test_spawn},    {"threads", threads},
      {"signals", signals},    {"cancelled", test_cancel}, {"mapped", test_mappings}};
  for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; ++i)
    if (strcmp(what, scenarios[i].name) == 0) return scenarios[i].run(), 0;
  return 2;
}

// uses HOW: uses a file in ways that buffers must not change.
#define _GNU_SOURCE
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "closing.h"

static int is(const char* how, const char* name) { return strcmp(how, name) == 0; }

static void put(int file, const char* text) { must("write", write(file, text, strlen(text))); }

static void show(int file) {
  void* memory = NULL;
  if (posix_memalign(&memory, 4096, 4096) != 0) exit(2);
  const long size = must("pread", pread(file, memory, 4096, 0));
  printf("it holds %.*s\n", (int)size, (char*)memory);
  free(memory);
}

/// The file is open a second time, so that it is not buffered.
static void open_twice(const char* how) {
  const int flags = is(how, "direct") ? O_DIRECT : is(how, "synchronous") ? O_SYNC : 0;
  const int first_flags = is(how, "other_first") ? 0 : flags;
  must("link", link(kName, "other"));
  const char* name = flags != 0 ? kName : "other";
  const int early = is(how, "other_first") ? must("open", open(name, O_RDWR)) : -1;
  const int out = open_one(O_RDWR);
  put(out, "A");
  put(out, "AAA");
  const int other = early >= 0 ? early : must("open", open(name, O_RDWR | first_flags));
  show(other);
  if (!is(how, "direct")) must("pwrite", pwrite(other, "BB", 2, 0));
  put(out, "CC");
  show(other);
  must("close", close(out));
  must("close", close(other));
}

static void map_and_close(void) {
  int file = open_one(O_RDWR);
  put(file, "AAAA");
  char* mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  must("close", close(file));
  file = open_one(O_RDWR);
  for (const char* text = "XYB"; *text != 0; ++text) must("pwrite", pwrite(file, text, 1, 0));
  printf("the mapping holds %.4s\n", mapped);
  memcpy(mapped, "CC", 2);
  show(file);
  must("munmap", munmap(mapped, 4096));
  must("close", close(file));
}

/// A call that fails closes nothing.
static void fail_to_close(void) {
  const int file = open_one(O_RDWR);
  put(file, "A");
  put(file, "BB");
  say("dup3", dup3(0, file, O_APPEND));
  put(file, "CC");
  say("close_range", close_range((unsigned)file, (unsigned)file, 0x80));
  put(file, "DD");
  must("close", close(file));
}

/// The C library forks in daemon().
static void become_daemon(void) {
  int ends[2];
  char byte;
  must("pipe", pipe(ends));
  const int file = open_one(O_RDWR);
  put(file, "head");
  const pid_t child = must("fork", fork());
  if (child == 0) {
    must("close", close(ends[0]));
    const int own = must("open", open("daemon.dat", O_RDWR | O_CREAT, 0644));
    put(own, "head");
    put(own, "head");
    must("daemon", daemon(1, 1));
    for (int i = 0; i < 100000; ++i) put(own, "0123456789");
    exit(0);
  }
  must("close", close(ends[1]));
  must("waitpid", waitpid(child, NULL, 0));
  say("read", read(ends[0], &byte, 1));
}

static void* write_for_ever(void* file) {
  for (;;) put(*(int*)file, "0123456789");
  return NULL;
}

static void cancel_writer(void) {
  int file = open_one(O_RDWR);
  pthread_t thread;
  void* result = NULL;
  pthread_create(&thread, NULL, write_for_ever, &file);
  while (lseek(file, 0, SEEK_CUR) == 0) usleep(1000);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  say("cancelled", result == PTHREAD_CANCELED);
  must("ftruncate", ftruncate(file, 0));
}

static int handled;
static void write_in_handler(int number) {
  (void)number;
  const int file = open("handler.dat", O_WRONLY | O_CREAT | O_APPEND, 0644);
  handled += (int)write(file, "x", 1);
  close(file);
}

static void open_in_handler(void) {
  const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
  struct stat status;
  signal(SIGALRM, write_in_handler);
  setitimer(ITIMER_REAL, &often, NULL);
  for (int i = 0; i < 20000; ++i) {
    const int file = open(kName, O_WRONLY);
    put(file, "ab");
    close(file);
  }
  setitimer(ITIMER_REAL, &never, NULL);
  must("stat", stat("handler.dat", &status));
  say("complete", status.st_size == handled);
  must("unlink", unlink("handler.dat"));
}

/// The bytes are in the file before the lock of another file ends.
static void write_under_lock(const char* how) {
  const int lock = must("open", open("lock", O_RDWR | O_CREAT, 0644));
  const int file = open_one(O_RDWR);
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (is(how, "flock")) must("flock", flock(lock, LOCK_EX));
  if (is(how, "lockf")) must("lockf", lockf(lock, F_LOCK, 0));
  if (is(how, "fcntl")) must("fcntl", fcntl(lock, F_SETLKW, &whole));
  put(file, "A");
  put(file, "BB");
  whole.l_type = F_UNLCK;
  if (is(how, "flock")) must("flock", flock(lock, LOCK_UN));
  if (is(how, "lockf")) must("lockf", lockf(lock, F_ULOCK, 0));
  if (is(how, "fcntl")) must("fcntl", fcntl(lock, F_SETLK, &whole));
  char text[100], path[100];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), file);
  const int again = (int)syscall(257, AT_FDCWD, path, O_RDONLY);  // unseen: another process's view
  const long size = read(again, text, sizeof text);
  printf("another process reads %.*s\n", (int)size, text);
}

static int show_size(const char* path, const struct stat* status, int kind, struct FTW* place) {
  (void)kind, (void)place;
  if (strstr(path, kName) != NULL) printf("%s has %ld bytes\n", path, (long)status->st_size);
  return 0;
}

/// The C library asks for the sizes of files that a walk finds.
static void walk(void) {
  char here[] = ".";
  char* const places[] = {here, NULL};
  const int file = open_one(O_RDWR);
  put(file, "A");
  put(file, "BB");
  must("nftw", nftw(here, show_size, 8, FTW_PHYS));
  put(file, "CCC");
  FTS* found = fts_open(places, FTS_PHYSICAL, NULL);
  for (FTSENT* entry; (entry = fts_read(found)) != NULL;)
    show_size(entry->fts_path, entry->fts_statp, 0, NULL);
  must("fts_close", fts_close(found));
  must("close", close(file));
}

/// putc_unlocked does not wait for the thread that flushes the stream.
static void put_unlocked(void) {
  FILE* stream = fopen(kName, "w");
  const time_t begin = time(NULL);
  long count = 0, wrong = 0;
  while (time(NULL) - begin < 4) {
    char text[16];
    for (int k = 0; k < 1000; ++k) {
      snprintf(text, sizeof text, "%09ld\n", count++ % 1000000000);
      for (const char* at = text; *at != 0; ++at) putc_unlocked(*at, stream);
    }
    usleep(100);
  }
  fclose(stream);
  stream = fopen(kName, "r");
  for (long i = 0; i < count; ++i) {
    long value = -1;
    wrong += fscanf(stream, "%ld", &value) != 1 || value != i;
  }
  say("wrong", wrong);
  fclose(stream);
  must("truncate", truncate(kName, 0));
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  must("close", close(open_one(O_RDWR | O_CREAT)));
  if (is(how, "other") || is(how, "other_first") || is(how, "direct") || is(how, "synchronous"))
    open_twice(how);
  if (is(how, "mapped")) map_and_close();
  if (is(how, "failing")) fail_to_close();
  if (is(how, "daemon")) become_daemon();
  if (is(how, "cancelled")) cancel_writer();
  if (is(how, "handler")) open_in_handler();
  if (is(how, "flock") || is(how, "lockf") || is(how, "fcntl")) write_under_lock(how);
  if (is(how, "unlocked")) put_unlocked();
  if (is(how, "walked")) walk();
  return 0;
}

// Many files from one line, ever new stacks in many threads, and a loop after both, for
// test_call_sites.py.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kFiles = 4000, kThreads = 16, kRounds = 1500 };

static void check(int right) {
  if (!right) _exit(9);
}

static const char* directory;

__attribute__((noinline)) static void put(int file, unsigned depth) {
  volatile char room[48];
  memset((char*)room, (int)depth, sizeof room);
  if (depth > 0)
    put(file, depth - 1);
  else
    check(write(file, "x", 1) == 1);  // mark: many-stacks
  __asm__ volatile("");
}

static void* run(void* number) {
  char name[4096];
  snprintf(name, sizeof name, "%s/thread%zu", directory, (size_t)number);
  const int file = open(name, O_CREAT | O_WRONLY, 0600);
  unsigned seed = (unsigned)(size_t)number;
  for (int i = 0; i < kRounds; ++i) {
    char room[rand_r(&seed) % 4096 + 1];
    memset(room, 1, sizeof room);
    put(file, (unsigned)rand_r(&seed) % 90);
  }
  close(file);
  return NULL;
}

int main(int count, char** words) {
  check(count == 2);
  directory = words[1];
  pthread_t threads[kThreads];
  for (size_t i = 0; i < kThreads; ++i)
    check(pthread_create(&threads[i], NULL, run, (void*)i) == 0);
  for (size_t i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kFiles; ++i) {
    char name[4096];
    snprintf(name, sizeof name, "%s/file%d", directory, i);
    const int file = open(name, O_CREAT | O_WRONLY, 0600);  // mark: many-files
    check(close(file) == 0);
  }
  const int late = open("late", O_CREAT | O_WRONLY, 0600);
  for (int i = 0; i < kRounds; ++i) check(write(late, "x", 1) == 1);  // mark: late
  return 0;
}

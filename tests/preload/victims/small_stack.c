// A thread with the smallest stack is the first one that uses files. Small stacks lie side by side:
// a frame that is larger than the page between them changes the variables of another thread.
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { kThreads = 8, kRounds = 20, kStack = 16 << 10 };

static void use_files(int number) {
  char name[32], text[64];
  struct stat status;
  snprintf(name, sizeof name, "small%d", number);
  for (int i = 0; i < kRounds; ++i) {
    const int file = open(name, O_RDWR | O_CREAT | O_APPEND, 0644);
    if (write(file, "0123456789", 10) != 10 || pread(file, text, sizeof text, 0) < 10) exit(2);
    if (fstat(file, &status) != 0 || close(file) != 0 || stat(name, &status) != 0) exit(3);
    if (access(name, R_OK) != 0 || rename(name, name) != 0) exit(4);
  }
}

static void* run(void* number) {
  use_files((int)(long)number);
  return NULL;
}

int main(void) {
  pthread_attr_t attributes;
  pthread_t threads[kThreads];
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, kStack) != 0) return 77;
  for (long i = 0; i < kThreads; ++i)
    if (pthread_create(&threads[i], &attributes, run, (void*)i) != 0) return 5;
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  return 0;
}

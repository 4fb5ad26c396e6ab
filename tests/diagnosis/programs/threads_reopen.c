/* Threads that open the common log for each of their lines. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

enum { THREADS = 2, LINE = 48, GROUP = 1000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long lines, group = 1;

static void append(const char* text, size_t bytes) {
  pthread_mutex_lock(&mutex);
  const int fd = open("threads.log", O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd < 0 || write(fd, text, bytes) < 0) perror("threads.log");
  close(fd);
  pthread_mutex_unlock(&mutex);
}

static void* work(void* name) {
  char* text = malloc((size_t)group * LINE + 1);
  for (long done = 0; done < lines; done += group) {
    const long n = lines - done < group ? lines - done : group;
    for (long i = 0; i < n; i++) snprintf(text + i * LINE, LINE + 1, "%-47s\n", (char*)name);
    append(text, (size_t)n * LINE);
  }
  free(text);
  return NULL;
}

int main(int argc, char** argv) {
  lines = read_size(argc, argv);
  if (is_repaired(argc, argv)) group = lines > 10 * GROUP ? lines / 10 : GROUP;
  pthread_t threads[THREADS];
  for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, work, "worker");
  for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
  compute(1500);
  printf("%ld lines of %d threads\n", lines, THREADS);
  return 0;
}

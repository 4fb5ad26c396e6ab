// Forks while another thread asks for the facts of a file without a name. Usage: unnamed FILE, with
// a file that consists of subfiles.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int unnamed;
static volatile int asking = 1;

static void check(int condition, const char* text) {
  if (condition) return;
  perror(text);
  abort();
}
#define CHECK(condition) check(condition, #condition)

static void* ask(void* nothing) {
  struct stat facts;
  while (asking) CHECK(fstat(unnamed, &facts) == 0);
  return nothing;
}

int main(int argc, char** argv) {
  char name[] = "unnamed-XXXXXX";
  struct stat facts;
  pthread_t thread;
  CHECK(argc == 2);
  for (int i = 0; i < 64; ++i) CHECK(close(open(argv[1], O_RDONLY)) == 0);
  unnamed = mkstemp(name);
  CHECK(unnamed >= 0 && unlink(name) == 0);
  CHECK(pthread_create(&thread, NULL, ask, NULL) == 0);
  for (int i = 0; i < 400; ++i) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      _exit(fstat(unnamed, &facts) != 0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  asking = 0;
  CHECK(pthread_join(thread, NULL) == 0);
  return 0;
}

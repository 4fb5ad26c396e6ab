// lines HOW: writes lines to out.txt by stdio or by write(2), and ends in the given way.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int out;

static void from_handler(int signal) {
  (void)signal;
  if (write(out, "from the handler\n", 17) != 17) _exit(9);
}

static void write_lines(int count) {
  char line[32];
  for (int i = 0; i < count; ++i) {
    const int size = snprintf(line, sizeof line, "line %d\n", i);
    if (write(out, line, (size_t)size) != size) {
      printf("write: %s\n", strerrorname_np(errno));
      exit(3);
    }
  }
}

/// Prints lines, a long one and a formatted size into the file, and prints the bytes.
static int print_lines(void) {
  static char large[9000];
  memset(large, 'x', sizeof large - 1);
  long bytes = 0;
  for (int i = 0; i < 1000; ++i) bytes += dprintf(out, "line %d %s\n", i, "of text");
  bytes += dprintf(out, "%s\n", large);
  bytes += dprintf(out, "%s", "");
  bytes += dprintf(out, "%d\n", dprintf(-1, "no file"));
  printf("%ld\n", bytes);
  return close(out);
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "return";
  if (strcmp(how, "tiny") == 0) {
    static char tiny[64];
    FILE* stream = fopen("out.txt", "w");
    setvbuf(stream, tiny, _IOFBF, sizeof tiny);
    for (int i = 0; i < 1000; ++i) fprintf(stream, "line %d\n", i);
    return fclose(stream);
  }
  if (strcmp(how, "stdio") == 0) {
    FILE* stream = fopen("out.txt", "w");
    for (int i = 0; i < 1000; ++i) {
      fprintf(stream, "line %d\n", i);
      fflush(stream);
    }
    return fclose(stream);
  }
  if (strcmp(how, "print") == 0) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < 1000; ++i) {
      printf("line %d\n", i);
      if (argc > 2 && i == 500) fprintf(stderr, "half\n");
    }
    return 0;
  }
  out = open("out.txt", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (strcmp(how, "handler") == 0) {
    signal(SIGALRM, from_handler);
    ualarm(200, 200);
    write_lines(100000);
    ualarm(0, 0);
    return close(out);
  }
  if (strcmp(how, "dprintf") == 0) return print_lines();
  write_lines(1000);
  if (strcmp(how, "_exit") == 0) _exit(0);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "term") == 0) raise(SIGTERM);
  if (strcmp(how, "segv") == 0) raise(SIGSEGV);
  if (strcmp(how, "exec") == 0) execlp("true", "true", NULL);
  if (strcmp(how, "system") == 0) return system("test $(wc -l < out.txt) = 1000") == 0 ? 0 : 4;
  if (strcmp(how, "full") == 0) {
    const int result = close(out);
    printf("close: %s\n", result == 0 ? "" : strerrorname_np(errno));
    return result == 0 ? 0 : 5;
  }
  if (strcmp(how, "wait") == 0) {
    puts("waiting");
    fflush(stdout);
    pause();
  }
  return 0;
}

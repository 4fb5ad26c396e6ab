// narrow MODE HOW [redirected]: writes lines to a stream that is unbuffered (none) or line-buffered
// (line), and uses the file in another way after each line. Prints the results of these uses. With
// `redirected` the stream is standard output, redirected to out.dat, and results go to standard
// error.
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static FILE *stream, *results;
static int mode;

static int is(const char* a, const char* b) { return strcmp(a, b) == 0; }

static FILE* open_stream(const char* how) {
  FILE* opened = results == stderr ? stdout : fopen("out.dat", how);
  if (opened == NULL) exit(5);
  if (mode == _IONBF)
    setbuf(opened, NULL);
  else
    setlinebuf(opened);
  return opened;
}

static void say(long value) { fprintf(results, "%ld\n", value); }

static long size_of(const char* path) {
  struct stat status;
  return stat(path, &status) == 0 ? (long)status.st_size : -1;
}

static void run_child(void (*start)(void)) {
  fflush(results);
  start();
}

static void run_system(void) { say(system("wc -c < out.dat; echo child >> out.dat")); }

static void run_popen(void) {
  char text[32] = "";
  FILE* pipe = popen("wc -c < out.dat", "r");
  if (fgets(text, sizeof text, pipe) != NULL) fputs(text, results);
  pclose(pipe);
}

static void run_spawn(void) {
  char* words[] = {"wc", "-c", "out.dat", NULL};
  pid_t child;
  if (posix_spawnp(&child, "wc", NULL, NULL, words, environ) == 0) waitpid(child, NULL, 0);
}

static void run_vfork(void) {
  const pid_t child = vfork();
  if (child == 0) {
    execlp("wc", "wc", "-c", "out.dat", NULL);
    _exit(9);
  }
  waitpid(child, NULL, 0);
}

static void run_fork(void) {
  const pid_t child = fork();
  if (child == 0) {
    fputs("child\n", stream);
    fflush(stream);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static void read_again(void) {
  char text[64] = "";
  const int descriptor = open("out.dat", O_RDONLY);
  say(read(descriptor, text, sizeof text));
  close(descriptor);
}

static void read_stream(void) {
  FILE* other = fopen("out.dat", "r");
  int lines = 0;
  for (int c; (c = fgetc(other)) != EOF;) lines += c == '\n';
  say(lines);
  fclose(other);
}

static void write_both(void) {
  if (write(fileno(stream), "direct\n", 7) != 7) exit(6);
}

static void write_copy(void) {
  static int copy = -1;
  if (copy < 0) copy = dup(fileno(stream));
  if (write(copy, "copy\n", 5) != 5) exit(6);
}

static void map(void) {
  const size_t size = (size_t)size_of("out.dat");
  const char* text = mmap(NULL, size, PROT_READ, MAP_SHARED, fileno(stream), 0);
  say(text[size - 2]);
  munmap((void*)text, size);
}

static void rename_file(void) {
  say(rename("out.dat", "old.dat"));
  say(size_of("old.dat"));
  say(rename("old.dat", "out.dat"));
}

static void look(const char* how) {
  struct stat status;
  if (is(how, "stat")) say(size_of("out.dat"));
  if (is(how, "fstat")) say(fstat(fileno(stream), &status) == 0 ? (long)status.st_size : -1);
  if (is(how, "seek")) say(lseek(fileno(stream), 0, SEEK_CUR));
  if (is(how, "open")) read_again();
  if (is(how, "fopen")) read_stream();
  if (is(how, "write")) write_both();
  if (is(how, "dup")) write_copy();
  if (is(how, "map")) map();
  if (is(how, "rename")) rename_file();
  if (is(how, "system")) run_child(run_system);
  if (is(how, "popen")) run_child(run_popen);
  if (is(how, "spawn")) run_child(run_spawn);
  if (is(how, "vfork")) run_child(run_vfork);
  if (is(how, "fork")) run_child(run_fork);
}

/// Two processes add to a number in the file, in turns by a lock.
static void add_in_turns(void) {
  FILE* made = fopen("out.dat", "w");
  fputs("000000\n", made);
  fclose(made);
  pid_t children[2];
  for (int i = 0; i < 2; ++i) {
    if ((children[i] = fork()) != 0) continue;
    execl("/proc/self/exe", "narrow", mode == _IONBF ? "none" : "line", "add", NULL);
    _exit(9);
  }
  for (int i = 0; i < 2; ++i) waitpid(children[i], NULL, 0);
}

static void add(void) {
  stream = open_stream("r+");
  for (int i = 0; i < 500; ++i) {
    int value = 0;
    flock(fileno(stream), LOCK_EX);
    rewind(stream);
    if (fscanf(stream, "%d", &value) != 1) exit(7);
    rewind(stream);
    fprintf(stream, "%06d\n", value + 1);
    flock(fileno(stream), LOCK_UN);
  }
  fclose(stream);
}

/// Looks at the size now and then; prints the system writes of the process.
static void count(void) {
  for (int i = 0; i < 10000; ++i) {
    fputs("a line\n", stream);
    if (i % 1000 == 0 && size_of("out.dat") != 7 * (i + 1)) exit(8);
  }
  char text[512] = "";
  const int descriptor = open("/proc/self/io", O_RDONLY);
  if (read(descriptor, text, sizeof text - 1) <= 0) exit(6);
  say(atol(strstr(text, "syscw: ") + 7));
}

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  results = argc == 4 ? stderr : stdout;
  mode = is(argv[1], "none") ? _IONBF : _IOLBF;
  if (is(argv[2], "add")) return add(), 0;
  if (is(argv[2], "flock")) return add_in_turns(), 0;
  int other = -1;
  if (is(argv[2], "before")) other = open("out.dat", O_RDWR | O_CREAT, 0644);
  stream = open_stream("a+");
  if (is(argv[2], "count")) return count(), fclose(stream);
  for (int i = 0; i < 4; ++i) {
    fprintf(stream, "line %d\n", i);
    char text[8];
    if (other >= 0) say(pread(other, text, sizeof text, 7 * i));
    look(argv[2]);
  }
  return fclose(stream);
}

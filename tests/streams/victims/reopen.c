// Opens and closes files repeatedly, like programs that keep no file open. Usage: reopen HOW TIMES;
// prints the results.
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "closing.h"

static void write_one(int flags, const char* text) {
  const int fd = open_one(flags);
  must("write", write(fd, text, strlen(text)));
  must("close", close(fd));
}

static void show(const char* name) {
  char text[4096];
  const int fd = open(name, O_RDONLY);
  if (fd < 0) return say(name, -1);
  const long size = must("read", read(fd, text, sizeof text - 1));
  text[size] = 0;
  printf("%s: %s\n", name, text);
  must("close", close(fd));
}

static void nothing(int times) {
  for (int i = 0; i < times; ++i) must("close", close(open_one(O_RDWR | O_CREAT)));
}

static void append(int times) {
  for (int i = 0; i < times; ++i) write_one(O_WRONLY | O_CREAT | O_APPEND, "line\n");
}

static void stdio(int times) {
  for (int i = 0; i < times; ++i) {
    FILE* out = fopen(kName, "a");
    if (out == NULL || fputs("line\n", out) < 0 || fclose(out) != 0) exit(1);
  }
}

static void stdio_modes(int times) {
  char text[100];
  static const char* const kModes[] = {"w", "r", "a", "r+", "w+", "a+"};
  for (int i = 0; i < times; ++i) {
    const char* mode = kModes[i % 6];
    FILE* file = fopen(kName, mode);
    printf("%s at %ld:", mode, ftell(file));
    if (strchr("ra", mode[0]) != NULL || mode[1] == '+')
      printf(" read %s", fgets(text, sizeof text, file) == NULL ? "nothing\n" : text);
    fseek(file, 0, SEEK_CUR);
    if (mode[0] != 'r' || mode[1] == '+') printf(" wrote %d\n", fprintf(file, "%s %d\n", mode, i));
    printf(" at %ld\n", ftell(file));
    must("fclose", fclose(file));
  }
}

/// The state of a file in one test must not affect the next.
static void truths(void) {
  write_one(O_WRONLY | O_CREAT, "first");
  show(kName);
  int fd = open_one(O_RDWR);
  say("offset", lseek(fd, 0, SEEK_CUR));
  must("close", close(fd));
  errno = 0;
  say("write to a closed one", write(fd, "x", 1));
  say("fstat of a closed one", fstat(fd, &(struct stat){0}));
  say("dup of a closed one", dup(fd));
  say("close of a closed one", close(fd));
  write_one(O_WRONLY | O_TRUNC, "cut");
  show(kName);
  say("exclusive", open(kName, O_RDWR | O_CREAT | O_EXCL, 0644));
  must("unlink", unlink(kName));
  say("unlinked", open(kName, O_RDWR));
  printf("held %d\n", count_descriptors());
  write_one(O_WRONLY | O_CREAT, "second");
  show(kName);
  must("rename", rename(kName, "other.dat"));
  say("renamed", open(kName, O_WRONLY));
  show("other.dat");
  write_one(O_WRONLY | O_CREAT, "third");
  must("rename", rename("other.dat", kName));
  show(kName);
  must("chdir", mkdir("below", 0755) | chdir("below"));
  say("elsewhere", open(kName, O_WRONLY));
  write_one(O_WRONLY | O_CREAT, "below");
  show(kName);
  must("chdir", chdir(".."));
  show(kName);
  fd = open_one(O_RDONLY | O_CLOEXEC);
  say("flags", fcntl(fd, F_GETFD));
  must("close", close(fd));
  fd = open_one(O_RDONLY);
  say("flags", fcntl(fd, F_GETFD));
  must("close", close(fd));
  say("slash", open("out.dat/", O_RDONLY));
}

static void processes(void) {
  write_one(O_WRONLY | O_CREAT, "here");
  show(kName);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    printf("child holds %d\n", count_descriptors());
    write_one(O_WRONLY | O_APPEND, " and there");
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  show(kName);
  fflush(stdout);
  must("system", system("ls -l /proc/self/fd | grep -c out.dat; printf shell > out.dat"));
  show(kName);
}

static void others(void) {
  write_one(O_WRONLY | O_CREAT, "mine");
  show(kName);
  fflush(stdout);
  // Changes the file invisibly for the layers of this process: in a process that it did not start.
  FILE* go = fopen("go", "w");
  fclose(go);
  while (access("gone", F_OK) != 0) usleep(10000);
  show(kName);
  for (int i = 0; i < 12000 && count_descriptors() != 0; ++i) usleep(10000);
  printf("held %d\n", count_descriptors());
}

static void append_line(const char* mode, const char* path, int number) {
  char line[16];
  const int size = snprintf(line, sizeof line, "%d\n", number);
  if (strcmp(mode, "stdio") == 0) {
    FILE* out = fopen(path, "a");
    if (out == NULL || fputs(line, out) < 0 || fclose(out) != 0) exit(1);
    return;
  }
  const int fd = must("open", open(path, O_WRONLY | O_CREAT | O_APPEND, 0644));
  must("write", write(fd, line, (size_t)size));
  must("close", close(fd));
}

/// Appends lines to a hundred files in turn.
static void many(int rounds) {
  char name[32];
  for (int i = 0; i < 100 * rounds; ++i) {
    snprintf(name, sizeof name, "%d.dat", i % 100);
    append_line("write", name, i);
  }
}

/// Appends lines; after each step another process may change the name of the file.
static void steps(const char* mode, int count) {
  char name[32];
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < 3; ++k) append_line(mode, "sub/out.dat", 10 * i + k);
    snprintf(name, sizeof name, "go.%d", i);
    close(must("open", open(name, O_WRONLY | O_CREAT, 0644)));
    snprintf(name, sizeof name, "done.%d", i);
    while (access(name, F_OK) != 0) usleep(1000);
  }
}

/// Closes all descriptors, of which the program has opened none, and opens files again.
static void sweep(void) {
  int closed = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5; ++i) append_line("write", kName, i);
    for (int fd = 3; fd < 3000; ++fd) closed += close(fd) == 0;
    const int fd = open_one(O_RDONLY);
    for (int copy = 1000; copy < 1010; ++copy) must("dup2", dup2(fd, copy));
    for (int i = 0; i < 5; ++i) append_line("write", kName, i);
    for (int copy = 1000; copy < 1010; ++copy) {
      say("offset", lseek(copy, 0, SEEK_CUR));
      must("close", close(copy));
    }
    must("close", close(fd));
  }
  printf("closed %d\n", closed);
}

static void numbers(void) {
  write_one(O_WRONLY | O_CREAT, "x");
  const int rest = open_one(O_RDONLY);
  must("close", close(rest));
  say("dup2 onto it", dup2(1, rest) == rest ? 0 : -1);
  say("another one", write(rest, "", 0));
  const int again = open_one(O_RDONLY);
  printf("another number %d\n", again != rest);
  must("close", close(again));
  must("close_range", close_range(3, ~0u, 0));
  printf("held %d\n", count_descriptors());
  const int last = open_one(O_RDONLY);
  must("close", close(last));
  close(0);
  printf("lowest %d\n", open(kName, O_RDONLY));
  close(0);
  printf("lowest %d\n", open(kName, O_RDONLY));
}

static void add_line(const char* text) {
  FILE* out = fopen(kName, "a");
  if (out == NULL || fputs(text, out) < 0 || fclose(out) != 0) exit(1);
}

static void show_by_map(void) {
  struct stat status;
  const int fd = open(kName, O_RDONLY);
  must("fstat", fstat(fd, &status));
  const char* map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
  printf("mapped %ld %.*s\n", (long)status.st_size, (int)status.st_size, map);
  must("close", close(fd));
}

/// A line written to a closed stream is in the file, for every way of reading it.
static void looks(void) {
  struct stat status;
  char text[200];
  for (int i = 0; i < 3; ++i) add_line("line\n");
  say("stat", stat(kName, &status) < 0 ? -1 : status.st_size);
  add_line("and\n");
  show(kName);
  const int fd = open(kName, O_RDONLY), both = open(kName, O_RDWR);
  add_line("more\n");
  say("seek", lseek(fd, 0, SEEK_END));
  add_line("for another descriptor\n");
  say("pread", pread(fd, text, sizeof text, 0));
  must("pwrite", pwrite(both, "LINE", 4, 0));
  add_line("behind\n");
  must("write", write(both, "between ", 8));
  add_line("and again\n");
  say("fstat", fstat(fd, &status) < 0 ? -1 : status.st_size);
  close(fd);
  close(both);
  FILE* reader = fopen(kName, "r");
  while (fgets(text, sizeof text, reader) != NULL) printf("read %s", text);
  clearerr(reader);
  add_line("for a stream\n");
  printf("then %s", fgets(text, sizeof text, reader) == NULL ? "nothing\n" : text);
  fclose(reader);
  add_line("to be mapped\n");
  show_by_map();
  FILE* out = fopen(kName, "a");
  printf("at %ld\n", ftell(out));
  fputs("unfinished ", out);
  show(kName);
  fclose(out);
  say("truncate", truncate(kName, 9));
  add_line("cut\n");
  out = fopen(kName, "r+");
  printf("in place: %s", fgets(text, sizeof text, out));
  fclose(out);
}

/// The pending bytes of a closed stream stay with its file when the name changes.
static void names(void) {
  add_line("first\n");
  must("rename", rename(kName, "other.dat"));
  add_line("second\n");
  show("other.dat");
  must("link", link(kName, "linked.dat"));
  add_line("third\n");
  show("linked.dat");
  must("unlink", unlink(kName));
  add_line("fourth\n");
  show(kName);
  show("linked.dat");
  FILE* out = fopen(kName, "w");
  fputs("anew\n", out);
  must("fclose", fclose(out));
  add_line("fifth\n");
  must("rename", rename("other.dat", kName));
  add_line("sixth\n");
  show(kName);
  must("fsync", fsync(must("open", open(kName, O_RDONLY))));
}

static void in_processes(void) {
  add_line("parent\n");
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    show(kName);
    add_line("child\n");
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  show(kName);
  add_line("again\n");
  fflush(stdout);
  must("system", system("cat out.dat"));
  add_line("once more\n");
  FILE* cat = popen("cat out.dat", "r");
  for (int c; (c = fgetc(cat)) != EOF;) putchar(c);
  pclose(cat);
}

/// Ends with a pending line of a closed stream, and one of a closed descriptor.
static void ends(const char* how) {
  add_line("last\n");
  const int fd = must("open", open("second.dat", O_WRONLY | O_CREAT | O_APPEND, 0644));
  must("write", write(fd, "last", 4));
  must("close", close(fd));
  if (strcmp(how, "_exit") == 0) _exit(3);
  if (strcmp(how, "quick_exit") == 0) quick_exit(3);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "signal") == 0) raise(SIGTERM);
  if (strcmp(how, "exec") == 0) execlp("cat", "cat", kName, "second.dat", NULL);
  exit(3);
}

/// Limits files to 8 bytes from now on.
static void limit(void) {
  signal(SIGXFSZ, SIG_IGN);
  must("setrlimit", setrlimit(RLIMIT_FSIZE, &(struct rlimit){8, 8}));
}

static void fails_in_a_stream(void) {
  FILE* out = fopen(kName, "a");
  fputs("much more than that\n", out);
  limit();
  say("close", fclose(out));
  must("stat", stat(kName, &(struct stat){0}));  // writes the pending bytes, which fails
  out = fopen(kName, "a");
  say("next close", fclose(out));
  out = fopen(kName, "a");
  say("another one", fclose(out));
}

static void fails_in_a_descriptor(void) {
  const int lost = open_one(O_WRONLY | O_CREAT);
  must("write", write(lost, "much more than that", 19));
  limit();
  say("close", close(lost));
  must("stat", stat(kName, &(struct stat){0}));
  const int fd = open_one(O_WRONLY | O_CREAT);
  say("next write", write(fd, "x", 1));
  say("another one", write(fd, "x", 1));
  say("next close", close(fd));
}

static void closed_and_gone(int times) {
  char name[30];
  for (int i = 0; i < times; ++i) {
    snprintf(name, sizeof name, "%d.dat", i);
    FILE* out = fopen(name, i % 2 == 0 ? "w" : "w+");
    for (int k = 0; k < i % 7 * 1000; ++k) fprintf(out, "%d\n", k);
    must("fclose", fclose(out));
    if (i % 5 == 0) must("unlink", unlink(name));
    if (i % 5 == 1) must("rename", rename(name, "moved.dat"));
    if (i % 5 == 2) show(name);
    const int fd = must("open", open("all.dat", O_WRONLY | O_CREAT, 0644));
    must("pwrite", pwrite(fd, name, 5, i * 5));
    must("close", close(fd));
  }
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "nothing";
  const int times = argc > 2 ? atoi(argv[2]) : 1;
  if (strcmp(how, "nothing") == 0) nothing(times);
  if (strcmp(how, "append") == 0) append(times);
  if (strcmp(how, "stdio") == 0) stdio(times);
  if (strcmp(how, "modes") == 0) stdio_modes(times);
  if (strcmp(how, "truths") == 0) truths();
  if (strcmp(how, "processes") == 0) processes();
  if (strcmp(how, "others") == 0) others();
  if (strcmp(how, "numbers") == 0) numbers();
  if (strcmp(how, "many") == 0) many(times);
  if (strcmp(how, "steps") == 0) steps(argv[3], times);
  if (strcmp(how, "sweep") == 0) sweep();
  if (strcmp(how, "looks") == 0) looks();
  if (strcmp(how, "names") == 0) names();
  if (strcmp(how, "in_processes") == 0) in_processes();
  if (strcmp(how, "ends") == 0) ends(argv[2]);
  if (strcmp(how, "fails_in_a_stream") == 0) fails_in_a_stream();
  if (strcmp(how, "fails_in_a_descriptor") == 0) fails_in_a_descriptor();
  if (strcmp(how, "closed_and_gone") == 0) closed_and_gone(times);
  return 0;
}

// A random sequence of calls on two files, chosen by a seed: prints the result of each call and
// the bytes read. They must not depend on buffers. Usage: sequence SEED STEPS
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kDescriptors = 6, kLargest = 9000 };

static unsigned long long state;
static unsigned below(unsigned end) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(state >> 33) % end;
}

static int fds[kDescriptors];
static char data[kLargest];
static const char* const names[] = {"one.dat", "two.dat"};
static int step;

static void say(const char* call, long result) {
  printf("%d %s %ld %s\n", step, call, result, result < 0 ? strerrorname_np(errno) : "");
}

static unsigned hash(const char* bytes, long size) {
  unsigned sum = 5381;
  for (long i = 0; i < size; ++i) sum = sum * 33 + (unsigned char)bytes[i];
  return sum;
}

static void say_read(const char* call, long result) {
  say(call, result);
  if (result > 0) printf("  %u\n", hash(data, result));
}

static size_t size(void) { return below(10) == 0 ? below(kLargest) : below(300); }

static const char* fill(size_t bytes) {
  memset(data, 'a' + (int)below(26), bytes);
  if (bytes > 0) data[bytes - 1] = '\n';
  return data;
}

static void open_one(int i) {
  static const int kFlags[] = {O_RDWR | O_CREAT,
                               O_RDWR | O_CREAT,
                               O_WRONLY | O_CREAT,
                               O_WRONLY | O_CREAT | O_APPEND,
                               O_RDWR | O_CREAT | O_APPEND,
                               O_RDWR | O_CREAT | O_TRUNC,
                               O_RDONLY};
  fds[i] = open(names[below(2)], kFlags[below(7)], 0644);
  say("open", fds[i] < 0 ? -1 : 0);
}

static void show_file(const char* name) {
  struct stat status;
  if (stat(name, &status) != 0) return say("stat", -1);
  say("stat", status.st_size);
}

static void in_child(int fd) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const char* text = fill(100);
    const long wrote = write(fd, text, 100);
    _exit(wrote == 100 ? 7 : 8);
  }
  int status = 0;
  waitpid(child, &status, 0);
  say("fork", WEXITSTATUS(status));
}

/// Forks a child that keeps all descriptors; the next call of this step lets it write and end.
static void in_lingering_child(int fd) {
  static pid_t child = -1;
  static int end = -1;
  if (child > 0) {
    close(end);
    int status = 0;
    waitpid(child, &status, 0);
    child = -1;
    return say("lingered", WEXITSTATUS(status));
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) exit(9);
  fflush(stdout);
  child = fork();
  if (child == 0) {
    char nothing;
    close(ends[1]);
    if (read(ends[0], &nothing, 1) != 0) _exit(9);
    const char* text = fill(150);
    _exit(write(fd, text, 150) == 150 ? 7 : 8);
  }
  close(ends[0]);
  end = fcntl(ends[1], F_DUPFD_CLOEXEC, 200);
  close(ends[1]);
}

/// Runs a program with the file as its output.
static void as_output(int fd) {
  fflush(stdout);
  const pid_t child = below(2) == 0 ? fork() : vfork();
  if (child == 0) {
    dup2(fd, 1);
    execlp("echo", "echo", "from another program", NULL);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  say("echo", WEXITSTATUS(status));
}

static void by_map(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0 || status.st_size == 0) return say("fstat", -1);
  char* map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return say("mmap", -1);
  printf("%d mapped %u\n", step, hash(map, status.st_size));
  munmap(map, (size_t)status.st_size);
}

static void by_other_program(void) {
  char command[100];
  snprintf(command, sizeof command, "cksum %s 2>/dev/null", names[below(2)]);
  fflush(stdout);
  say("system", system(command));
}

static void by_stdio(void) {
  static const char* const kModes[] = {"a", "a", "a", "a+", "r+", "w"};
  FILE* stream = fopen(names[below(2)], kModes[below(6)]);
  if (stream == NULL) return say("fopen", -1);
  say("fprintf", fprintf(stream, "line %d\n", step));
  if (below(4) == 0) say("ftell", ftell(stream));
  say("fclose", fclose(stream));
}

/// A stream that stays open, and sees appended bytes of other writers.
static void by_reader(void) {
  static FILE* reader = NULL;
  if (reader == NULL) {
    reader = fopen(names[below(2)], "r");
    return say("fopen", reader == NULL ? -1 : 0);
  }
  fflush(reader);  // the bytes read ahead depend on the size of its buffer
  say_read("fread", (long)fread(data, 1, below(500), reader));
  clearerr(reader);
  if (below(3) != 0) return;
  say("fclose", fclose(reader));
  reader = NULL;
}

static void by_stream_of_descriptor(int fd) {
  const int copy = dup(fd);
  FILE* stream = copy < 0 ? NULL : fdopen(copy, "r+");
  if (stream == NULL) {
    if (copy >= 0) close(copy);
    return say("fdopen", -1);
  }
  say("fputs", fputs("through a stream\n", stream) < 0 ? -1 : 0);
  say("fclose", fclose(stream));
}

/// Every other call finds bytes written to memory in the file.
static void by_written_map(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0 || status.st_size == 0) return say("fstat", -1);
  char* map = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return say("mmap", -1);
  map[below((unsigned)status.st_size)] = 'm';
  say("msync", msync(map, (size_t)status.st_size, MS_SYNC));
  munmap(map, (size_t)status.st_size);
}

/// Two processes write in turn through separate descriptors.
static void by_other_process(int fd) {
  static char text[] = "from another process";
  fflush(stdout);
  const char* name = names[below(2)];
  const off_t at = below(20000);
  const pid_t child = fork();
  if (child == 0) {
    const int own = open(name, O_WRONLY);
    const long wrote = own < 0 ? -1 : pwrite(own, text, sizeof text - 1, at);
    _exit(wrote < 0 ? 1 : close(own));
  }
  int status = 0;
  waitpid(child, &status, 0);
  say("other process", WEXITSTATUS(status));
  say_read("pread", pread(fd, data, 100, at));
}

static void vectors(int fd, int at) {
  struct iovec pieces[3];
  fill(600);
  for (int i = 0; i < 3; ++i) pieces[i] = (struct iovec){data + 200 * i, below(200)};
  if (at < 0)
    say("writev", writev(fd, pieces, 3));
  else
    say("pwritev", pwritev(fd, pieces, 3, at));
}

static void transfer(int fd) {
  const off_t at = below(20000);
  const size_t bytes = size();
  switch (below(13)) {
    case 9:
      return say("dprintf", dprintf(fd, "%.*s", (int)below(200), fill(200)));
    case 10: {
      const struct iovec pieces[2] = {{data, bytes / 2}, {data + bytes / 2, bytes - bytes / 2}};
      return say_read("readv", readv(fd, pieces, 1 + (int)below(2)));
    }
    case 11:
      return say_read("preadv", preadv(fd, &(struct iovec){data, bytes}, 1, at));
    case 12:
      return say("pwritev2", pwritev2(fd, &(struct iovec){(void*)fill(bytes), bytes}, 1,
                                      below(3) == 0 ? -1 : at, 0));
    case 0:
    case 1:
    case 2:
    case 3:
      return say("write", write(fd, fill(bytes), bytes));
    case 4:
      return say("pwrite", pwrite(fd, fill(bytes), bytes, at));
    case 5:
      return say_read("read", read(fd, data, bytes));
    case 6:
      return say_read("pread", pread(fd, data, bytes, at));
    case 7:
      return vectors(fd, -1);
    default:
      return vectors(fd, (int)at);
  }
}

static void move(int fd) {
  const off_t at = below(20000);
  static const int kWhence[] = {SEEK_SET, SEEK_CUR, SEEK_END};
  switch (below(4)) {
    case 0:
      return say("lseek", lseek(fd, 0, SEEK_CUR));
    case 1:
      return say("lseek", lseek(fd, at, SEEK_SET));
    default:
      return say("lseek", lseek(fd, at - 10000, kWhence[below(3)]));
  }
}

static void change(int fd, int i) {
  const char* name = names[below(2)];
  struct stat status;
  switch (below(20)) {
    case 14:
      return say("fdatasync", fdatasync(fd));
    case 15: {
      off_t from = below(20000), to = below(20000);
      const int other = fds[below(kDescriptors)];
      return other < 0 ? (void)0
                       : say("copy_file_range", copy_file_range(other, below(2) == 0 ? &from : NULL,
                                                                fd, &to, below(3000), 0));
    }
    case 16:
      return say("fallocate", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                        below(10000), 1 + below(5000)));
    case 17: {
      int ahead = 0;
      const long result = ioctl(fd, FIONREAD, &ahead);
      say("ioctl", result);
      return say("ahead", ahead);
    }
    case 18:
      return say("link", link(name, "three.dat") == 0 && rename("three.dat", names[below(2)]) == 0
                             ? 0
                             : -1);
    case 19:
      return say("fchmod", fchmod(fd, below(2) == 0 ? 0644 : 0600));
    case 0:
      return say("ftruncate", ftruncate(fd, below(20000)));
    case 1:
      return say("truncate", truncate(name, below(20000)));
    case 2:
      return say("fsync", fsync(fd));
    case 3:
      return say("fstat", fstat(fd, &status) == 0 ? status.st_size : -1);
    case 4:
      return show_file(name);
    case 5:
      return say("rename", rename(names[0], names[1]));
    case 6:
      return say("unlink", unlink(name));
    case 7: {
      const int other = (int)below(kDescriptors);
      if (other == i) return;
      if (fds[other] >= 0) close(fds[other]);
      fds[other] = below(2) == 0 ? dup(fd) : fcntl(fd, F_DUPFD_CLOEXEC, 50);
      return say("dup", fds[other] < 0 ? -1 : 0);
    }
    case 8: {
      const int other = (int)below(kDescriptors);
      return other == i || fds[other] < 0 ? (void)0
                                          : say("dup2", dup2(fd, fds[other]) < 0 ? -1 : 0);
    }
    case 9: {
      const int other = fds[below(kDescriptors)];
      off_t at = below(5000);
      return other < 0
                 ? (void)0
                 : say("sendfile", sendfile(fd, other, below(2) == 0 ? &at : NULL, below(3000)));
    }
    case 10:
      return say("posix_fallocate", posix_fallocate(fd, below(10000), 1 + below(10000)));
    default:
      return show_file(name);
  }
}

static void rarely(int fd) {
  switch (below(13)) {
    case 10:
      return by_stream_of_descriptor(fd);
    case 11:
      return by_written_map(fd);
    case 12:
      return by_other_process(fd);
    case 0:
      return in_child(fd);
    case 7:
    case 8:
      return in_lingering_child(fd);
    case 9:
      return as_output(fd);
    case 1:
      return by_map(fd);
    case 2:
      return by_stdio();
    case 3:
      return say("fcntl", fcntl(fd, F_SETFL, below(2) == 0 ? O_APPEND : 0));
    case 4: {
      struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
      const long locked = fcntl(fd, F_SETLK, &lock);
      return say("lock", locked);
    }
    default:
      return by_other_program();
  }
}

int main(int argc, char** argv) {
  state = strtoull(argv[argc > 1 ? 1 : 0], NULL, 10) * 2654435761u + 1;
  const int steps = argc > 2 ? atoi(argv[2]) : 200;
  // Half of the sequences have no calls that end buffering.
  const unsigned rare = below(2) == 0 ? 60 : 1000000;
  const unsigned streams = rare == 60 && below(2) == 0 ? 5 : 1000000;
  for (int i = 0; i < kDescriptors; ++i) fds[i] = -1;
  for (step = 0; step < steps; ++step) {
    const int i = (int)below(kDescriptors);
    if (fds[i] < 0) {
      open_one(i);
      continue;
    }
    const unsigned what = below(100);
    if (below(streams) == 0)
      below(3) == 0 ? by_reader() : by_stdio();
    else if (below(rare) == 0)
      rarely(fds[i]);
    else if (what < 70)
      transfer(fds[i]);
    else if (what < 82)
      move(fds[i]);
    else if (what < 96)
      change(fds[i], i);
    else {
      say("close", close(fds[i]));
      fds[i] = -1;
    }
  }
  fflush(stdout);
  if (below(2) == 0) _exit(3);
  return 0;
}

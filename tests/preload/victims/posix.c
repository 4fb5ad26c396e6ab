// POSIX calls in known numbers. Usage: posix SCENARIO; creates files in the current directory.
#define _GNU_SOURCE
#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#define CHECK(condition)  \
  do {                    \
    if (!(condition)) {   \
      perror(#condition); \
      abort();            \
    }                     \
  } while (0)

static char block[4096];

static void data(void) {
  const int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0644);
  CHECK(write(fd, block, 1000) == 1000);       // 0
  CHECK(pwrite(fd, block, 100, 5000) == 100);  // 5000
  struct iovec two[2] = {{block, 10}, {block, 20}};
  CHECK(writev(fd, two, 2) == 30);           // 1000
  CHECK(pwritev(fd, two, 2, 7000) == 30);    // 7000
  CHECK(pwritev2(fd, two, 2, -1, 0) == 30);  // 1030, moves the offset
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  CHECK(read(fd, block, 500) == 500);       // 0
  CHECK(pread(fd, block, 10, 6000) == 10);  // 6000
  CHECK(readv(fd, two, 2) == 30);           // 500
  CHECK(preadv(fd, two, 2, 5000) == 30);    // 5000
  CHECK(lseek(fd, -10, SEEK_END) == 7020);
  CHECK(read(fd, block, 100) == 10);  // 7020, short
  CHECK(read(fd, block, 100) == 0);   // end
  CHECK(close(fd) == 0);
}

static void metadata(void) {
  struct stat status;
  const int fd = creat("meta", 0600);
  CHECK(fd >= 0 && stat("meta", &status) == 0 && lstat("./meta", &status) == 0 &&
        fstat(fd, &status) == 0);
  CHECK(fstatat(AT_FDCWD, "meta", &status, 0) == 0 &&
        fstatat(fd, "", &status, AT_EMPTY_PATH) == 0 && access("meta", R_OK) == 0);
  struct statvfs space;
  struct statfs system;
  CHECK(statvfs("meta", &space) == 0 && fstatfs(fd, &system) == 0);
  CHECK(stat("missing", &status) == -1 && errno == ENOENT);
  CHECK(open("missing", O_RDONLY) == -1 && errno == ENOENT);
  CHECK(fsync(fd) == 0 && fdatasync(fd) == 0 && ftruncate(fd, 10) == 0 &&
        truncate("meta", 20) == 0 && posix_fallocate(fd, 0, 4096) == 0);
  CHECK(flock(fd, LOCK_EX) == 0 && lockf(fd, F_TEST, 1) == 0);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
  CHECK(fcntl(fd, F_SETLK, &lock) == 0);
  CHECK(close(fd) == 0 && rename("meta", "moved") == 0 && unlink("moved") == 0);
  CHECK(mkdir("folder", 0755) == 0 && rmdir("folder") == 0);
}

static void offsets(void) {
  const int fd = open("offsets", O_RDWR | O_CREAT, 0644);
  const int copy = dup(fd);
  CHECK(write(fd, block, 100) == 100 && write(copy, block, 100) == 100);        // 0, 100
  CHECK(dup2(copy, 90) == 90 && close(fd) == 0 && write(90, block, 50) == 50);  // 200
  CHECK(fcntl(90, F_DUPFD, 95) == 95 && close(90) == 0 && close(copy) == 0 &&
        write(95, block, 7) == 7);  // 250
  CHECK(close(95) == 0);
  const int append = open("offsets", O_WRONLY | O_APPEND);
  CHECK(write(append, block, 3) == 3 && write(append, block, 3) == 3);  // 257, 260
  CHECK(close(append) == 0);
}

static void directories(void) {
  CHECK(mkdir("d", 0755) == 0 && mkdir("d/e", 0755) == 0);
  const int folder = open("d", O_RDONLY | O_DIRECTORY);
  const int fd = openat(folder, "e/../file", O_WRONLY | O_CREAT, 0644);
  CHECK(folder >= 0 && fd >= 0 && write(fd, block, 11) == 11 && close(fd) == 0 &&
        close(folder) == 0);
  CHECK(chdir("d") == 0);
  const int here = open(".//e//../file", O_RDONLY);
  CHECK(here >= 0 && read(here, block, 11) == 11 && close(here) == 0 && chdir("..") == 0);
  DIR* listing = opendir("d");
  int entries = 0;
  while (readdir(listing) != NULL) ++entries;
  rewinddir(listing);
  CHECK(entries == 4 && readdir(listing) != NULL && closedir(listing) == 0);
}

static int visited;
static int visit(const char* path, const struct stat* status, int type, struct FTW* place) {
  (void)status, (void)place;
  visited += type == FTW_F && access(path, R_OK) == 0;
  return 0;
}
static int visit_old(const char* path, const struct stat* status, int type) {
  return visit(path, status, type, NULL);
}

// A directory with two files and a directory with one, visited twice.
static void walks(void) {
  CHECK(mkdir("d", 0755) == 0 && mkdir("d/e", 0755) == 0);
  CHECK(creat("d/1", 0644) >= 0 && creat("d/2", 0644) >= 0 && creat("d/e/3", 0644) >= 0);
  CHECK(nftw("d", visit, 8, FTW_PHYS) == 0 && visited == 3);
  CHECK(ftw("d", visit_old, 8) == 0 && visited == 6);
  glob_t found;
  CHECK(glob("d/[12]", 0, NULL, &found) == 0 && found.gl_pathc == 2);
  globfree(&found);
  CHECK(glob("d/x*", 0, NULL, &found) == GLOB_NOMATCH);
}

static void attributes(void) {
  const int fd = creat("file", 0644);
  char place[PATH_MAX];
  const ssize_t none = getxattr("file", "user.none", place, sizeof place);
  CHECK(fd >= 0 && none == -1 && listxattr("file", place, sizeof place) >= 0);
  CHECK(fgetxattr(fd, "user.none", place, sizeof place) == -1);
  const struct utimbuf times = {1, 2};
  CHECK(utime("file", &times) == 0 && utimes("file", NULL) == 0 && futimes(fd, NULL) == 0);
  CHECK(realpath("file", place) == place);
  const struct iovec piece = {block, 20};
  CHECK(pwritev2(fd, &piece, 1, 0, RWF_DSYNC) == 20 && pwritev2(fd, &piece, 1, 0, 0) == 20);
}

static void special(void) {
  char name[] = "tempXXXXXX";
  const int temporary = mkstemp(name);
  CHECK(temporary >= 0 && write(temporary, block, 5) == 5 && close(temporary) == 0 &&
        rename(name, "temporary") == 0);
  const int unnamed = open(".", O_TMPFILE | O_RDWR, 0600);
  CHECK(unnamed < 0 || (write(unnamed, block, 6) == 6 && close(unnamed) == 0));
  const int memory = memfd_create("victim", 0);
  CHECK(memory >= 0 && write(memory, block, 7) == 7 && close(memory) == 0);
  char shared_name[40];
  snprintf(shared_name, sizeof shared_name, "/pario-victim-%d", (int)getpid());
  const int shared = shm_open(shared_name, O_RDWR | O_CREAT, 0600);
  CHECK(shared >= 0 && write(shared, block, 8) == 8 && close(shared) == 0);
  CHECK(shm_unlink(shared_name) == 0);
}

static void between(void) {
  const int in = open("in", O_RDWR | O_CREAT, 0644), out = open("out", O_RDWR | O_CREAT, 0644);
  CHECK(write(in, block, 4000) == 4000);
  off_t from = 100;
  CHECK(sendfile(out, in, &from, 1000) == 1000 && from == 1100);
  loff_t begin = 2000, end = 5000;
  CHECK(copy_file_range(in, &begin, out, &end, 500, 0) == 500);
  int ends[2];
  CHECK(pipe(ends) == 0);
  begin = 0;
  CHECK(splice(in, &begin, ends[1], NULL, 300, 0) == 300 &&
        splice(ends[0], NULL, out, NULL, 300, 0) == 300);
  close(in), close(out);
}

static void map_file(void) {
  const int fd = open("mapped", O_RDWR | O_CREAT, 0644);
  CHECK(ftruncate(fd, 1 << 20) == 0);
  char* memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(memory != MAP_FAILED && close(fd) == 0);
  memset(memory, 1, 1 << 20);
  CHECK(msync(memory, 1 << 20, MS_SYNC) == 0 && munmap(memory, 1 << 20) == 0);
}

static void asynchronous(void) {
  const int fd = open("aio", O_RDWR | O_CREAT, 0644);
  struct aiocb out = {.aio_fildes = fd, .aio_buf = block, .aio_nbytes = 2000, .aio_offset = 100};
  struct aiocb in = {.aio_fildes = fd, .aio_buf = block, .aio_nbytes = 500, .aio_offset = 300};
  const struct aiocb *waits_out[] = {&out}, *waits_in[] = {&in};
  CHECK(aio_write(&out) == 0 && aio_suspend(waits_out, 1, NULL) == 0 && aio_return(&out) == 2000);
  CHECK(aio_read(&in) == 0 && aio_suspend(waits_in, 1, NULL) == 0 && aio_return(&in) == 500);
  close(fd);
}

static void closing(void) {
  int fds[5];
  for (int i = 0; i < 5; ++i) CHECK((fds[i] = open("many", O_RDWR | O_CREAT, 0644)) >= 0);
  CHECK(close_range((unsigned)fds[1], (unsigned)fds[3], 0) == 0 && fcntl(fds[2], F_GETFD) == -1 &&
        fcntl(fds[4], F_GETFD) >= 0);
  closefrom(3);
  CHECK(fcntl(fds[0], F_GETFD) == -1 && fcntl(fds[4], F_GETFD) == -1);
  for (int fd = 3; fd < 4096; ++fd) CHECK(close(fd) == -1 && errno == EBADF);
  const int fd = open("after", O_RDWR | O_CREAT, 0644);
  CHECK(fd == 3 && write(fd, block, 9) == 9);
}

static void use_inherited(void) {
  CHECK(write(7, block, 12) == 12 && read(6, block, 4) == 4 && write(1, "out\n", 4) == 4);
}

// Flags that the kernel rejects before it reads the name.
static void invalid(void) {
  const char* names[] = {NULL, (const char*)1, ""};
  for (int i = 0; i < 3; ++i)
    CHECK(open(names[i], O_TMPFILE | O_RDONLY, 0600) == -1 && errno == EINVAL);
}

// 10,160 bytes in each direction: of reads and writes only large ones count.
static void sockets(void) {
  int ends[2], pipes[2];
  char got[5000];
  CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0 && pipe(pipes) == 0);
  struct iovec piece = {block, 20}, place = {got, sizeof got};
  struct msghdr out = {.msg_iov = &piece, .msg_iovlen = 1};
  struct msghdr in = {.msg_iov = &place, .msg_iovlen = 1};
  struct mmsghdr outs[2] = {{.msg_hdr = out}, {.msg_hdr = out}}, ins[2] = {{in, 0}, {in, 0}};
  CHECK(send(ends[0], block, 100, 0) == 100 && recv(ends[1], got, sizeof got, 0) == 100);
  CHECK(sendto(ends[0], got, 5000, 0, NULL, 0) == 5000);
  CHECK(recvfrom(ends[1], got, sizeof got, 0, NULL, NULL) == 5000);
  CHECK(sendmsg(ends[0], &out, 0) == 20 && recvmsg(ends[1], &in, 0) == 20);
  CHECK(sendmmsg(ends[0], outs, 2, 0) == 2 && recvmmsg(ends[1], ins, 2, 0, NULL) == 2);
  CHECK(write(ends[0], got, 5000) == 5000 && read(ends[1], got, sizeof got) == 5000);
  CHECK(write(ends[0], got, 70) == 70 && read(ends[1], got, sizeof got) == 70);
  CHECK(write(pipes[1], got, 5000) == 5000 && read(pipes[0], got, sizeof got) == 5000);
  CHECK(recv(ends[1], got, sizeof got, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

// Waits of 20 ms and more for a pipe without data, by each function; those without descriptors only
// sleep.
static void polls(void) {
  int pipes[2];
  CHECK(pipe(pipes) == 0);
  const int watch = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  CHECK(epoll_ctl(watch, EPOLL_CTL_ADD, pipes[0], &event) == 0);
  struct pollfd one = {.fd = pipes[0], .events = POLLIN};
  const struct timespec patience = {0, 20000000};
  CHECK(poll(&one, 1, 20) == 0 && ppoll(&one, 1, &patience, NULL) == 0);
  CHECK(epoll_wait(watch, &event, 1, 20) == 0 && epoll_pwait(watch, &event, 1, 20, NULL) == 0);
  fd_set set;
  FD_ZERO(&set);
  FD_SET(pipes[0], &set);
  struct timeval brief = {0, 20000};
  CHECK(select(pipes[0] + 1, &set, NULL, NULL, &brief) == 0);
  FD_SET(pipes[0], &set);
  CHECK(pselect(pipes[0] + 1, &set, NULL, NULL, &patience, NULL) == 0);
  CHECK(epoll_pwait2(watch, &event, 1, &patience, NULL) == 0);
  CHECK(poll(NULL, 0, 20) == 0 && select(0, NULL, NULL, NULL, &brief) == 0);
  CHECK(epoll_wait(-1, &event, 1, 20) == -1 && errno == EBADF);
}

// A connection by each function, and the first byte of a program that writes it after 20 ms.
static void peers(void) {
  const struct sockaddr_un name = {AF_UNIX, "peers.socket"};
  const int server = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK(bind(server, (const struct sockaddr*)&name, sizeof name) == 0 && listen(server, 2) == 0);
  for (int i = 0; i < 2; ++i)
    CHECK(connect(socket(AF_UNIX, SOCK_STREAM, 0), (const struct sockaddr*)&name, sizeof name) ==
          0);
  CHECK(accept(server, NULL, NULL) >= 0 && accept4(server, NULL, NULL, SOCK_CLOEXEC) >= 0);
  FILE* slow = popen("sleep 0.02; echo line; echo more", "r");
  CHECK(fgetc(slow) == 'l' && fgetc(slow) == 'i' && fgets(block, sizeof block, slow) != NULL);
  CHECK(fgets(block, sizeof block, slow) != NULL && pclose(slow) == 0);
}

static void synchronise(void) {
  sync();
  sync();
}

static void closed(void) {
  close(0), close(1), close(2);
  CHECK(open("first", O_RDWR | O_CREAT, 0644) == 0);
  CHECK(open("second", O_RDWR | O_CREAT, 0644) == 1);
  CHECK(write(0, block, 10) == 10 && write(1, block, 20) == 20);
}

static const struct {
  const char* name;
  void (*run)(void);
} scenarios[] = {{"data", data},
                 {"metadata", metadata},
                 {"offsets", offsets},
                 {"directories", directories},
                 {"special", special},
                 {"between", between},
                 {"mapped", map_file},
                 {"asynchronous", asynchronous},
                 {"closing", closing},
                 {"inherited", use_inherited},
                 {"closed", closed},
                 {"invalid", invalid},
                 {"sockets", sockets},
                 {"polls", polls},
                 {"peers", peers},
                 {"walks", walks},
                 {"attributes", attributes},
                 {"synchronise", synchronise}};

int main(int argc, char** argv) {
  for (size_t i = 0; argc == 2 && i < sizeof scenarios / sizeof scenarios[0]; ++i)
    if (strcmp(argv[1], scenarios[i].name) == 0) return scenarios[i].run(), 0;
  return 2;
}
